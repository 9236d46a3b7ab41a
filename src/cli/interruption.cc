#include "cli/interruption.h"

#include "base/error.h"

namespace tokamak::cli {

void Interruption::check() const {
  const int signal = signal_.received();
  if (signal == 0) return;
  fail(Kind::kStopped, str("stopped by signal ", signal, "; the unfinished output was removed"));
}

}  // namespace tokamak::cli

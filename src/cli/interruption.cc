#include "cli/interruption.h"

#include "base/error.h"

namespace tokamak::cli {

Interruption::Interruption() : alone_(make_single_comm()) {}

void Interruption::check() const {
  const int signal = signal_.agreed(*alone_);
  if (signal == 0) return;
  fail(Kind::kStopped, str("stopped by signal ", signal, "; the unfinished output was removed"));
}

}  // namespace tokamak::cli

// The cases on a real GPU or on the emulator, and the program's main. Without a GPU it lists the skipped cases and
// returns 77, which ctest counts as skipped.
#include <cstdlib>
#include <string>

#include "backend/under_test.h"
#include "base/log.h"
#include "support/catch.h"

namespace tokamak::testing {

Backend make_backend_under_test() {
  log::configure(0, 1, log::Level::kWarning);
  RuntimeOptions options;
  options.backend = BackendKind::kCuda;
  options.autotune = Autotune::kFalse;
  options.ranks_per_gpu = 64;  // a small part of its memory: the head goes in chunks
  if (const char* kind = std::getenv("TOKAMAK_TEST_ATTENTION"); kind != nullptr && std::string(kind) == "native") {
    options.attention = AttentionKind::kNative;
  }
  return make_cuda_backend(options, 0);
}

}  // namespace tokamak::testing

int main(int argc, char** argv) {
  const tokamak::CudaPresence presence = tokamak::cuda_presence();
  return tokamak::run_catch(argc, argv, presence.devices == 0 ? presence.missing : "");
}

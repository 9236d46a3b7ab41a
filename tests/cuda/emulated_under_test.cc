// The cases on the emulator, and the program's main. Memory under test is the host's (only what a CudaDevice allocates
// is protected), and every launch is waited for: the cases read results at once.
#include <cstdlib>

#include "backend/under_test.h"
#include "base/log.h"
#include "support/catch.h"

namespace tokamak::testing {

Backend make_backend_under_test() {
  log::configure(0, 1, log::Level::kWarning);
  RuntimeOptions options;
  options.backend = BackendKind::kCuda;
  options.ranks_per_gpu = 64;  // a small part of its memory: the head goes in chunks
  return make_cuda_backend(options, 0);
}

std::byte* allocate_under_test(size_t bytes) {
  return static_cast<std::byte*>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
}

void release_under_test(std::byte* memory) { std::free(memory); }

}  // namespace tokamak::testing

int main(int argc, char** argv) {
  setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  return tokamak::run_catch(argc, argv);
}

// The cases on a real GPU, and the program's main: without a GPU it names what it leaves out and returns 77, which
// ctest counts as skipped. Memory under test is managed, so that host and GPU touch it alike, and every launch is
// waited for: the cases read results at once.
#include <cuda_runtime.h>

#include <cstdlib>
#include <string>

#include "backend/under_test.h"
#include "base/log.h"
#include "cuda/check.h"
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

std::byte* allocate_under_test(size_t bytes) {
  void* memory = nullptr;
  TOKAMAK_CUDA(cudaMallocManaged(&memory, bytes));
  return static_cast<std::byte*>(memory);
}

void release_under_test(std::byte* memory) {
  cudaDeviceSynchronize();
  cudaFree(memory);
}

}  // namespace tokamak::testing

int main(int argc, char** argv) {
  setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  const tokamak::CudaPresence presence = tokamak::cuda_presence();
  return tokamak::run_catch(argc, argv, presence.devices == 0 ? presence.missing : "");
}

#include "cuda/check.h"

#include <string>

#include "base/error.h"

namespace tokamak {

void cuda_failed(cudaError_t error, const char* call, const char* file, int line) {
  const std::string what =
      str("CUDA: ", cudaGetErrorString(error), " (", cudaGetErrorName(error), ") from ", call, " at ", file, ":", line);
  if (error == cudaErrorMemoryAllocation) {
    fail(Kind::kDevice, what, "a smaller training.micro_batch_size, or activation_checkpoint.mode: full");
  }
  if (error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver) fail(Kind::kDevice, what);
  if (error >= cudaErrorStreamCaptureUnsupported && error <= cudaErrorCapturedEvent) {
    fail(Kind::kUnsupported, what, "runtime.cuda_graphs: off runs without graphs");
  }
  fail(Kind::kDeviceFault, what,
       "an illegal access or a lost device may have its cause in an earlier kernel: "
       "CUDA_LAUNCH_BLOCKING=1 names that one");
}

void check_launch(const char* kernel) {
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) cuda_failed(error, kernel, "its launch", 0);
}

}  // namespace tokamak

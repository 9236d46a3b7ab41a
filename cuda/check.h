// Checks every CUDA runtime call and every launch. A failure is an Error with the call, its source location and CUDA's
// message. Its kind is kDevice if memory or a device is missing, kUnsupported if a graph cannot be captured, else
// kDeviceFault.
#pragma once

#include <cuda_runtime.h>

namespace tokamak {

[[noreturn]] void cuda_failed(cudaError_t error, const char* call, const char* file, int line);

// After a launch: detects a kernel that could not start (too much shared memory, no code for this GPU).
void check_launch(const char* kernel);

}  // namespace tokamak

#define TOKAMAK_CUDA(call)                                                     \
  do {                                                                         \
    if (const cudaError_t error_ = (call); error_ != cudaSuccess) [[unlikely]] \
      ::tokamak::cuda_failed(error_, #call, __FILE__, __LINE__);               \
  } while (false)

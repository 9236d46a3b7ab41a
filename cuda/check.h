// Every call of the CUDA runtime and every launch is checked; a failure is an Error that names the call, the place and
// CUDA's own words: kDevice where there is no memory, no device, or no way to record a graph; else kDeviceFault.
#pragma once

#include <cuda_runtime.h>

namespace tokamak {

[[noreturn]] void cuda_failed(cudaError_t error, const char* call, const char* file, int line);

// After a launch: one that could not start (too much shared memory, no code for this GPU) shows here.
void check_launch(const char* kernel);

}  // namespace tokamak

#define TOKAMAK_CUDA(call)                                                     \
  do {                                                                         \
    if (const cudaError_t error_ = (call); error_ != cudaSuccess) [[unlikely]] \
      ::tokamak::cuda_failed(error_, #call, __FILE__, __LINE__);               \
  } while (false)

// Plants faults for tests of error reports: TOKAMAK_PLANT=KERNEL:FAULT[,KERNEL:FAULT...], for kernels whose name begins
// with KERNEL. After illegal and trap the device fails, as a GPU does. With hang the kernel does not end, with wrong it
// does nothing. After memory no device memory is left.
#pragma once

#include "cuda_runtime.h"

namespace emulator {

bool begin_kernel(const char* name);  // false: the kernel is left out
cudaError_t fault_of_device();        // of a kernel that has run
cudaError_t fault_of_memory();
}  // namespace emulator

// Faults planted for tests of what reports them: TOKAMAK_PLANT=KERNEL:FAULT[,KERNEL:FAULT...], for kernels whose name
// begins so. illegal and trap: the device fails from then on, as a GPU does; hang: the kernel does not end; memory:
// there is none left after it; wrong: it does nothing.
#pragma once

#include "cuda_runtime.h"

namespace emulator {

bool begin_kernel(const char* name);  // false: it is left out
cudaError_t fault_of_device();        // of a kernel that has run
cudaError_t fault_of_memory();
}  // namespace emulator

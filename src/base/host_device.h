// TOKAMAK_HOST_DEVICE marks formulas that CUDA kernels share with the CPU. This is all that base/ has of CUDA.
#pragma once

#ifdef __CUDACC__
#define TOKAMAK_HOST_DEVICE __host__ __device__
#else
#define TOKAMAK_HOST_DEVICE
#endif

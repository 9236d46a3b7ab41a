// TOKAMAK_HOST_DEVICE marks the formulas that CUDA kernels share with the CPU, so that each has one text. Its own
// header, because base/ knows nothing of CUDA beyond this word.
#pragma once

#ifdef __CUDACC__
#define TOKAMAK_HOST_DEVICE __host__ __device__
#else
#define TOKAMAK_HOST_DEVICE
#endif

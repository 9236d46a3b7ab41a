// The rearrangements of lse that cuDNN asks for.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace tokamak {

// from (A, B, I) -> to (B, A, I). Our lse (Hq, N) is (Hq, B, T) of dense documents, and becomes (B, Hq, T); of ragged
// ones, token by token for cuDNN, it goes from (Hq, N, 1) to (N, Hq, 1) and back.
void pack_lse(cudaStream_t stream, const float* from, float* to, int64_t a, int64_t b, int64_t inner);

}  // namespace tokamak

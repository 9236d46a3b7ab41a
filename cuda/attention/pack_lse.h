// Transpositions of lse for cuDNN.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace tokamak {

// from (A, B, I) -> to (B, A, I). For dense documents our lse (Hq, N) is (Hq, B, T) and becomes (B, Hq, T). For ragged
// ones cuDNN wants one row per token: (Hq, N, 1) becomes (N, Hq, 1), and back. Behind `to`, `zeros` elements become 0.
void pack_lse(cudaStream_t stream, const float* from, float* to, int64_t a, int64_t b, int64_t inner,
              int64_t zeros = 0);

}  // namespace tokamak

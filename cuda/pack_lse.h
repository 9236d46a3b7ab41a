// The one rearrangement that cuDNN's backward asks for.
#pragma once

#include <cuda_runtime.h>

#include "cuda/attention_cudnn_layout.h"

namespace tokamak {

// lse (Hq, N) -> packed (B, Hq, T): cuDNN before 9.26 reads no other layout. 8 bytes per head and token.
void pack_lse(cudaStream_t stream, const float* lse, float* packed, const UniformDocuments& documents, int64_t heads);

}  // namespace tokamak

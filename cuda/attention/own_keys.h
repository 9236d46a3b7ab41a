// Copies keys, values and their gradients to separate rows, which cuDNN's ragged gradient of grouped heads needs (see
// AttentionGraphSpec), and back to the rows of qkv. By a kernel: the emulator has no strided cudaMemcpy.
#pragma once

#include <cuda_runtime.h>

#include "backend/ops.h"

namespace tokamak {

// (N, (Hq + 2 Hkv) D) bf16 <-> two of (N, Hkv D); all of them, and D bf16, multiples of 16 bytes. Behind each of the
// two, gather_keys writes `zero_rows` rows of zeros.
void gather_keys(cudaStream_t stream, const Tensor& qkv, const HeadLayout& heads, void* keys, void* values,
                 int64_t zero_rows);
void scatter_keys(cudaStream_t stream, const void* keys, const void* values, const HeadLayout& heads,
                  const Tensor& qkv);

}  // namespace tokamak

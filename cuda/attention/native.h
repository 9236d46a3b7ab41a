// Our own flash attention (Dao et al. 2022; Dao 2023), causal inside documents, with the same bits at every run: bf16
// of 64 or 128 features on tensor cores; everything else by plain f32 kernels, for which correctness is what counts.
// Queries, keys and values lie in one row per token (ops.h), and so do their gradients.
#pragma once

#include <cuda_runtime.h>

#include "backend/ops.h"

namespace tokamak::flash {

inline bool on_tensor_cores(DType act, int64_t head_dim) {
  return act == DType::kBF16 && (head_dim == 64 || head_dim == 128);
}

void forward_on_tensor_cores(cudaStream_t stream, const Attention& args);
void forward_generic(cudaStream_t stream, const Attention& args);

// Backward is three launches: delta_t = dout_t . out_t for each query head, then dK and dV, then dQ. The last two each
// form the scores again (7 products of tiles instead of 5), so that every sum has one writer and one order.
void sum_delta(cudaStream_t stream, const AttentionBackward& args, float* delta);  // (Hq, N)
void dkv_on_tensor_cores(cudaStream_t stream, const AttentionBackward& args, const float* delta);
void dq_on_tensor_cores(cudaStream_t stream, const AttentionBackward& args, const float* delta);
void backward_generic(cudaStream_t stream, const AttentionBackward& args, const float* delta);  // dK, dV and dQ

}  // namespace tokamak::flash

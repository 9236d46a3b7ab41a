// Our own flash attention (Dao et al. 2022; Dao 2023), causal within documents, deterministic. bf16 with 64 or 128
// features uses tensor cores; every other case uses plain f32 kernels that favour correctness over speed.
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
// recompute the scores (7 tile GEMMs instead of 5), so every sum has one writer and one order.
void sum_delta(cudaStream_t stream, const AttentionBackward& args, float* delta);  // (Hq, N)
void dkv_on_tensor_cores(cudaStream_t stream, const AttentionBackward& args, const float* delta);
void dq_on_tensor_cores(cudaStream_t stream, const AttentionBackward& args, const float* delta);
void backward_generic(cudaStream_t stream, const AttentionBackward& args, const float* delta);  // dK, dV and dQ

}  // namespace tokamak::flash

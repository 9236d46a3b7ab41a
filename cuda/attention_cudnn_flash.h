// Causal attention and its gradient as the operation graphs that cuDNN knows by their shape and serves with its fused
// kernels: operation by operation, for cuDNN's own graph API. cudnn-frontend's SDPA nodes expand to the same graphs.
#pragma once

#include <cstdint>

#include "cuda/attention_cudnn_operations.h"
#include "cuda/attention_cudnn_tensors.h"

namespace tokamak {

// What a call must give besides its own tensors: constants on the host, and memory for what passes between cuDNN's
// kernels, which need not be cleared (since 9.6).
enum FlashTensor : int64_t {
  kOne = kDValue + 1,
  kMinusInfinity,
  kRowSums,    // f32 (B, Hq, T)      backward
  kDQueryF32,  // f32 (B, Hq, T, D)   backward, unless deterministic
  kFirstInnerTensor,
};

CudnnOperations flash_forward(const AttentionGraphSpec& spec);
CudnnOperations flash_backward(const AttentionGraphSpec& spec);

int64_t row_sums_bytes(const AttentionGraphSpec& spec);
int64_t dquery_f32_bytes(const AttentionGraphSpec& spec);

}  // namespace tokamak

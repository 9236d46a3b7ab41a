// Selective recompute: chooses the activations that layers keep for backward. The choice is a number of layers for each
// tensor. It spares the most FLOPs or seconds for the bytes. Any choice gives the same bits.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/layer_table.h"
#include "model/model_config.h"
#include "model/options.h"
#include "tensor/tensor.h"

namespace tokamak {

// The tensors that a model's layers may keep besides their inputs: LayerTable(config).kept(). Every choice lists its
// counts in this order.
std::vector<KeptTensor> kept_tensors(const ModelConfig& config);
inline constexpr size_t kMostKeptTensors = 32;

// A value for each kept tensor; values beyond the model's tensors are 0. Trivially copyable.
template <class T>
struct PerKeptTensor {
  std::array<T, kMostKeptTensors> values{};
  T& operator[](size_t tensor) { return values[tensor]; }
  const T& operator[](size_t tensor) const { return values[tensor]; }
  bool operator==(const PerKeptTensor&) const = default;
};

// The number of layers that keep each tensor in a buffer of their own. The others of its kind share one buffer, in
// which backward finds the tensor of the last of them. Only norm1 and norm2 of the last layer are recomputed: the final
// norm uses their buffer.
using KeptLayers = PerKeptTensor<int64_t>;
KeptLayers all_kept(const std::vector<KeptTensor>& tensors);
std::vector<int64_t> counts_of(const ModelConfig& config, const KeptLayers& kept);
std::string kept_text(const ModelConfig& config, const KeptLayers& kept);  // "qkv of 3, attention of 0 layers, of 7"

struct KeepCost {
  int64_t bytes = 0;  // of one layer's tensor and the statistics kept with it, with the arena's alignment
  double spared = 0;  // FLOPs of the operation that it spares, 0 without a GEMM; or seconds (plan/auto_choice.h)
  int64_t most = 0;   // layers that may keep it
};
// For `tokens` tokens in sequences of `length`; a token attends to (length + 1) / 2 on average. `rows_behind`:
// Ops::rows_behind_attention; it affects only the bytes.
PerKeptTensor<KeepCost> keep_costs(const ModelConfig& config, int64_t tokens, int64_t length, DType compute,
                                   int64_t rows_behind = 0);

// The counts whose bytes together are at most `bytes` and that spare most; among equal ones those with the fewest
// bytes. A knapsack, solved exactly except for rounding (1e-12 of the result), in milliseconds. With more than 500
// partial choices of equal worth, the result may be one layer of one tensor below the best.
KeptLayers choose_kept(const PerKeptTensor<KeepCost>& costs, int64_t bytes);

// Likewise with costs in FLOPs. The remaining bytes go to tensors that spare only stores, as many bytes as fit.
KeptLayers choose_kept_by_flops(const PerKeptTensor<KeepCost>& costs, int64_t bytes);

// The layers that a mode keeps, with micro-batches of `tokens` tokens. kept_bytes: auto has no limit here. mode: auto
// must be resolved before (plan/auto_choice.h).
KeptLayers kept_layers(const ActivationCheckpointOptions& options, const ModelConfig& config, int64_t tokens,
                       int64_t length, DType compute, int64_t rows_behind = 0);

int64_t kept_bytes(const PerKeptTensor<KeepCost>& costs, const KeptLayers& kept);
double recomputed_flops(const PerKeptTensor<KeepCost>& costs, const KeptLayers& kept);

}  // namespace tokamak

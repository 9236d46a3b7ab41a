// Selective recompute: chooses the activations that layers keep for backward. A choice is a number of layers for each
// tensor. The best one spares the most FLOPs or seconds within a limit of bytes. Any choice gives the same bits.
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

// The number of layers that keep each tensor in a buffer of their own. The other layers of its kind share one buffer.
// There backward finds the tensor of the last layer, which therefore needs no buffer of its own. Only norm1 and norm2
// of the last layer must be recomputed: the final norm has overwritten their buffer.
using KeptLayers = PerKeptTensor<int64_t>;
KeptLayers all_kept(const std::vector<KeptTensor>& tensors);
std::vector<int64_t> counts_of(const ModelConfig& config, const KeptLayers& kept);
std::string kept_text(const ModelConfig& config, const KeptLayers& kept);  // "qkv of 3, attention of 0 layers, of 7"

struct KeepCost {
  int64_t bytes = 0;  // of one layer's tensor and the statistics kept with it, with the arena's alignment
  double spared = 0;  // FLOPs of the operation that it spares, 0 without a GEMM; or seconds (plan/auto_choice.h)
  int64_t most = 0;   // layers that may keep it
};
// For `tokens` tokens in sequences of `length`, each one document. `rows_behind`:
// Ops::rows_behind_attention; it affects only the bytes.
PerKeptTensor<KeepCost> keep_costs(const ModelConfig& config, int64_t tokens, int64_t length, DType compute,
                                   int64_t rows_behind = 0);

// The counts that spare most and together take at most `bytes`; of equally good ones, those with the fewest bytes. This
// is a knapsack, solved in milliseconds, exactly except for rounding (1e-12 of the result). With more than 500 partial
// choices of nearly equal worth, the result may spare less than the best, by at most one layer of one tensor.
KeptLayers choose_kept(const PerKeptTensor<KeepCost>& costs, int64_t bytes);

// choose_kept() with costs in FLOPs. The bytes that it leaves then go to tensors that spare only stores.
KeptLayers choose_kept_by_flops(const PerKeptTensor<KeepCost>& costs, int64_t bytes);

// The counts that a mode keeps with micro-batches of `tokens` tokens. `kept_bytes: auto` means no limit here. `mode:
// auto` must be resolved before (plan/auto_choice.h).
KeptLayers kept_layers(const ActivationCheckpointOptions& options, const ModelConfig& config, int64_t tokens,
                       int64_t length, DType compute, int64_t rows_behind = 0);

int64_t kept_bytes(const PerKeptTensor<KeepCost>& costs, const KeptLayers& kept);
double recomputed_flops(const PerKeptTensor<KeepCost>& costs, const KeptLayers& kept);

}  // namespace tokamak

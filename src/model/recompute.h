// Selective recompute: which activations the layers keep for backward, as the number of layers that keep each, so that
// the FLOPs or seconds spared are the most for the bytes. Any choice gives the same bits. The choice is exact, not greedy.
#pragma once

#include <array>
#include <cstdint>

#include "model/model_config.h"
#include "model/options.h"
#include "tensor/tensor.h"

namespace tokamak {

// What a layer may keep beside its input; one operation recomputes each. Backward needs all four, so what keeping one
// spares does not depend on the others. Norm outputs and SwiGLU are never kept, and cost no GEMM.
enum class KeptTensor { kQkv, kAttention, kMid, kGateUp };
inline constexpr std::array kKeptTensors = {KeptTensor::kQkv, KeptTensor::kAttention, KeptTensor::kMid,
                                            KeptTensor::kGateUp};
const char* name_of(KeptTensor tensor);  // as in the memory plan: "qkv"

template <class T>
struct PerKeptTensor {
  std::array<T, kKeptTensors.size()> values{};
  T& operator[](KeptTensor tensor) { return values[static_cast<size_t>(tensor)]; }
  const T& operator[](KeptTensor tensor) const { return values[static_cast<size_t>(tensor)]; }
  bool operator==(const PerKeptTensor&) const = default;
};

// Layers that keep each tensor in a buffer of their own; the others share one, in which backward finds what the last
// layer wrote. So L - 1 is all, and the last layer is never recomputed.
using KeptLayers = PerKeptTensor<int64_t>;
int64_t most_kept_layers(const ModelConfig& config);  // L - 1

struct KeepCost {
  int64_t bytes = 0;  // of one layer's tensor as committed, with its statistics
  double spared = 0;  // FLOPs of the operation that it spares; or seconds (plan/auto_choice.h)
};
// For `tokens` tokens in sequences of `length`; a token attends to (length + 1) / 2 on average. `rows_behind`:
// Ops::rows_behind_attention, which only the bytes depend on.
PerKeptTensor<KeepCost> keep_costs(const ModelConfig& config, int64_t tokens, int64_t length, DType compute,
                                   int64_t rows_behind = 0);

// The counts up to `most` whose bytes together are at most `bytes` and that spare most; of equal ones those of the
// fewest bytes. A knapsack, solved by enumerating the counts of all tensors but one.
KeptLayers choose_kept(const PerKeptTensor<KeepCost>& costs, int64_t most, int64_t bytes);

// What a mode keeps, with micro-batches of `tokens` tokens; kept_bytes: auto is without a limit here. mode: auto is
// settled before (train/auto_choice.h).
KeptLayers kept_layers(const ActivationCheckpointOptions& options, const ModelConfig& config, int64_t tokens,
                       int64_t length, DType compute, int64_t rows_behind = 0);

int64_t kept_bytes(const PerKeptTensor<KeepCost>& costs, const KeptLayers& kept);
double recomputed_flops(const PerKeptTensor<KeepCost>& costs, const KeptLayers& kept, int64_t most);

}  // namespace tokamak

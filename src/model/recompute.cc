#include "model/recompute.h"

#include <algorithm>

#include "base/error.h"
#include "model/activations.h"
#include "model/flops.h"

namespace tokamak {

namespace {

// Enumerates the counts of all tensors but the last, which takes what the bytes left allow.
class Knapsack {
 public:
  Knapsack(const PerKeptTensor<KeepCost>& costs, int64_t most) : costs_(costs.values), most_(most) {}

  KeptLayers solve(int64_t bytes) {
    descend(0, 0, 0, bytes);
    return best_;
  }

 private:
  void descend(size_t tensor, double spared_before, int64_t taken, int64_t left) {
    const KeepCost& cost = costs_[tensor];
    const int64_t fit = std::min(most_, left / std::max<int64_t>(cost.bytes, 1));
    const bool last = tensor + 1 == costs_.size();
    for (int64_t count = last ? fit : 0; count <= fit; ++count) {
      counts_.values[tensor] = count;
      const double spared = spared_before + static_cast<double>(count) * cost.spared;
      const int64_t bytes = count * cost.bytes;
      if (!last) {
        descend(tensor + 1, spared, taken + bytes, left - bytes);
      } else if (spared > most_spared_ || (spared == most_spared_ && taken + bytes < best_bytes_)) {
        best_ = counts_;
        most_spared_ = spared;
        best_bytes_ = taken + bytes;
      }
    }
  }

  std::array<KeepCost, kKeptTensors.size()> costs_;
  int64_t most_;
  KeptLayers counts_, best_;
  double most_spared_ = 0;
  int64_t best_bytes_ = 0;
};

}  // namespace

const char* name_of(KeptTensor tensor) {
  constexpr std::array kNames = {"qkv", "attention", "mid", "gate_up"};
  return kNames[static_cast<size_t>(tensor)];
}

int64_t most_kept_layers(const ModelConfig& config) { return config.num_hidden_layers - 1; }

PerKeptTensor<KeepCost> keep_costs(const ModelConfig& config, int64_t tokens, int64_t length, DType compute,
                                   int64_t rows_behind) {
  const LayerFlops layer = layer_flops(config);
  const PerKeptTensor<int64_t> bytes = ActivationPlan::bytes_of_layer(config, tokens, rows_behind, compute);
  const double attended = 0.5 * static_cast<double>(length + 1);
  PerKeptTensor<double> flops;
  flops[KeptTensor::kQkv] = layer.qkv;
  flops[KeptTensor::kAttention] = layer.per_attended * attended;
  flops[KeptTensor::kMid] = layer.o;
  flops[KeptTensor::kGateUp] = layer.gate_up;
  PerKeptTensor<KeepCost> costs;
  for (const KeptTensor tensor : kKeptTensors) {
    costs[tensor] = {bytes[tensor], static_cast<double>(tokens) * flops[tensor]};
  }
  return costs;
}

KeptLayers choose_kept(const PerKeptTensor<KeepCost>& costs, int64_t most, int64_t bytes) {
  return Knapsack(costs, most).solve(std::max<int64_t>(bytes, 0));
}

KeptLayers kept_layers(const ActivationCheckpointOptions& options, const ModelConfig& config, int64_t tokens,
                       int64_t length, DType compute, int64_t rows_behind) {
  KeptLayers kept;
  TOKAMAK_CHECK(options.mode != RecomputeMode::kAuto, "activation_checkpoint.mode: auto is not settled");
  if (options.mode == RecomputeMode::kFull) return kept;
  if (!options.kept_layers.empty()) {
    TOKAMAK_CHECK(options.kept_layers.size() == kKeptTensors.size(), options.kept_layers.size(), " counts of layers");
    std::copy(options.kept_layers.begin(), options.kept_layers.end(), kept.values.begin());
    return kept;
  }
  const int64_t most = most_kept_layers(config);
  if (options.mode == RecomputeMode::kSelective && !options.kept_bytes.is_auto()) {
    return choose_kept(keep_costs(config, tokens, length, compute, rows_behind), most, options.kept_bytes.value);
  }
  kept.values.fill(most);
  return kept;
}

int64_t kept_bytes(const PerKeptTensor<KeepCost>& costs, const KeptLayers& kept) {
  int64_t bytes = 0;
  for (const KeptTensor tensor : kKeptTensors) bytes += kept[tensor] * costs[tensor].bytes;
  return bytes;
}

double recomputed_flops(const PerKeptTensor<KeepCost>& costs, const KeptLayers& kept, int64_t most) {
  double flops = 0;
  for (const KeptTensor tensor : kKeptTensors) {
    flops += static_cast<double>(most - kept[tensor]) * costs[tensor].spared;
  }
  return flops;
}

}  // namespace tokamak

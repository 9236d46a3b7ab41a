#include "model/recompute.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/strings.h"
#include "model/activations.h"
#include "model/layer_table.h"

namespace tokamak {

namespace {

// Dynamic programming over the tensors, the most worth per byte first. A state is a choice for the tensors so far. It
// is dropped if another spares as much in as few bytes. It is also dropped if the relaxed problem (fractions of a
// layer) shows that it cannot reach the best choice found. So few states remain if the tensors differ in what
// they spare per byte.
class Knapsack {
 public:
  Knapsack(const PerKeptTensor<KeepCost>& costs, int64_t bytes) : costs_(costs.values), bytes_(bytes) {
    for (size_t tensor = 0; tensor < costs_.size(); ++tensor) {
      if (costs_[tensor].spared > 0) order_.push_back(tensor);
    }
    std::stable_sort(order_.begin(), order_.end(), [&](size_t a, size_t b) { return worth(a) > worth(b); });
  }

  KeptLayers solve() {
    std::vector<State> states(1);
    for (size_t i = 0; i < order_.size(); ++i) {
      std::vector<State> next;
      for (const State& state : states) {
        for (int64_t count = fit(i, state); count >= 0; --count) {
          const State more = with(state, i, count);
          const double reachable = complete(more, i + 1);
          // A smaller count of this tensor cannot reach more: it is worth most per byte.
          if (reachable < best_.spared * (1 - kRounding)) break;
          next.push_back(more);
        }
      }
      states = undominated(std::move(next));
    }
    return best_.counts;
  }

 private:
  struct State {
    int64_t bytes = 0;
    double spared = 0;
    KeptLayers counts;
  };
  static constexpr double kRounding = 1e-12;
  static constexpr int64_t kMostStates = 500;

  int64_t size(size_t tensor) const { return std::max<int64_t>(costs_[tensor].bytes, 1); }
  double worth(size_t tensor) const { return costs_[tensor].spared / double(size(tensor)); }
  int64_t fit(size_t i, const State& state) const {
    return std::min(costs_[order_[i]].most, (bytes_ - state.bytes) / size(order_[i]));
  }

  State with(State state, size_t i, int64_t count) const {
    const size_t tensor = order_[i];
    state.counts.values[tensor] = count;
    state.bytes += count * costs_[tensor].bytes;
    state.spared += double(count) * costs_[tensor].spared;
    return state;
  }

  // Adds as many layers of each tensor from `first` on as fit, for the best choice found. Returns what it would
  // spare if fractions of layers could be kept, too. No choice exceeds that.
  double complete(State state, size_t first) {
    double reachable = -1;
    for (size_t i = first; i < order_.size(); ++i) {
      const int64_t count = fit(i, state);
      state = with(state, i, count);
      if (count < costs_[order_[i]].most && reachable < 0) {
        reachable = state.spared + double(bytes_ - state.bytes) * worth(order_[i]);
      }
    }
    if (state.spared > best_.spared || (state.spared == best_.spared && state.bytes < best_.bytes)) best_ = state;
    return std::max(reachable, state.spared);
  }

  // The states that spare more than any other with as few bytes, ascending. Only tensors of nearly equal worth leave
  // too many states: then one state, the smallest, remains of each 1 / kMostStates of the bytes. The result
  // still spares at least as much as the greedy choice. So it misses the relaxed problem's by less than one layer of
  // one tensor.
  static std::vector<State> undominated(std::vector<State> states) {
    std::sort(states.begin(), states.end(), [](const State& a, const State& b) {
      return a.bytes != b.bytes ? a.bytes < b.bytes : a.spared > b.spared;
    });
    const auto filtered = [&](int64_t step) {
      std::vector<State> best;
      for (const State& state : states) {
        if (best.empty() || (state.spared > best.back().spared && state.bytes >= best.back().bytes + step)) {
          best.push_back(state);
        }
      }
      return best;
    };
    std::vector<State> best = filtered(0);
    if (std::ssize(best) <= kMostStates) return best;
    return filtered((states.back().bytes - states.front().bytes) / kMostStates);
  }

  std::array<KeepCost, kMostKeptTensors> costs_;
  std::vector<size_t> order_;  // tensors that spare something
  int64_t bytes_;
  State best_;
};

}  // namespace

std::vector<KeptTensor> kept_tensors(const ModelConfig& config) { return LayerTable(config).kept(); }

KeptLayers all_kept(const std::vector<KeptTensor>& tensors) {
  KeptLayers kept;
  for (size_t i = 0; i < tensors.size(); ++i) kept[i] = tensors[i].most;
  return kept;
}

std::vector<int64_t> counts_of(const ModelConfig& config, const KeptLayers& kept) {
  return {kept.values.begin(), kept.values.begin() + std::ssize(kept_tensors(config))};
}

std::string kept_text(const ModelConfig& config, const KeptLayers& kept) {
  std::string text;
  const std::vector<KeptTensor> tensors = kept_tensors(config);
  for (size_t i = 0; i < tensors.size(); ++i) {
    text += str(text.empty() ? "" : ", ", tensors[i].name, " of ", kept[i]);
    const bool last = i + 1 == tensors.size() || tensors[i + 1].most != tensors[i].most;
    if (last) text += str(" layers, of ", tensors[i].most);
  }
  return text;
}

PerKeptTensor<KeepCost> keep_costs(const ModelConfig& config, int64_t tokens, int64_t length, DType compute,
                                   int64_t rows_behind) {
  const LayerTable layers(config);
  const PerKeptTensor<int64_t> bytes = ActivationPlan::bytes_of_layer(layers, tokens, rows_behind, compute);
  PerKeptTensor<KeepCost> costs;
  for (size_t i = 0; i < layers.kept().size(); ++i) {
    const KeptTensor& tensor = layers.kept()[i];
    const double flops = tensor.row.flops + tensor.row.attention.per_token(length);
    costs[i] = {bytes[i], double(tokens) * flops, tensor.most};
  }
  return costs;
}

KeptLayers choose_kept(const PerKeptTensor<KeepCost>& costs, int64_t bytes) {
  return Knapsack(costs, std::max<int64_t>(bytes, 0)).solve();
}

KeptLayers choose_kept_by_flops(const PerKeptTensor<KeepCost>& costs, int64_t bytes) {
  KeptLayers kept = choose_kept(costs, bytes);
  PerKeptTensor<KeepCost> stores;
  for (size_t i = 0; i < kMostKeptTensors; ++i) {
    if (costs[i].spared == 0) stores[i] = {costs[i].bytes, double(costs[i].bytes), costs[i].most};
  }
  const KeptLayers more = choose_kept(stores, bytes - kept_bytes(costs, kept));
  for (size_t i = 0; i < kMostKeptTensors; ++i) kept[i] += more[i];
  return kept;
}

KeptLayers kept_layers(const ActivationCheckpointOptions& options, const ModelConfig& config, int64_t tokens,
                       int64_t length, DType compute, int64_t rows_behind) {
  KeptLayers kept;
  TOKAMAK_CHECK(options.mode != RecomputeMode::kAuto, "activation_checkpoint.mode: auto is not settled");
  if (options.mode == RecomputeMode::kFull) return kept;
  const std::vector<KeptTensor> tensors = kept_tensors(config);
  if (!options.kept_layers.empty()) {
    TOKAMAK_CHECK(options.kept_layers.size() <= tensors.size(), options.kept_layers.size(), " counts of layers");
    std::copy(options.kept_layers.begin(), options.kept_layers.end(), kept.values.begin());
    return kept;
  }
  if (options.mode == RecomputeMode::kSelective && !options.kept_bytes.is_auto()) {
    return choose_kept_by_flops(keep_costs(config, tokens, length, compute, rows_behind), options.kept_bytes.value);
  }
  return all_kept(tensors);
}

int64_t kept_bytes(const PerKeptTensor<KeepCost>& costs, const KeptLayers& kept) {
  int64_t bytes = 0;
  for (size_t i = 0; i < kMostKeptTensors; ++i) bytes += kept[i] * costs[i].bytes;
  return bytes;
}

double recomputed_flops(const PerKeptTensor<KeepCost>& costs, const KeptLayers& kept) {
  double flops = 0;
  for (size_t i = 0; i < kMostKeptTensors; ++i) {
    flops += double(costs[i].most - kept[i]) * costs[i].spared;
  }
  return flops;
}

}  // namespace tokamak

#include "optim/averages.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "base/strings.h"
#include "tensor/state_kinds.h"

namespace tokamak {

double average_weight(const AverageOptions& options, int64_t updates, int64_t tokens) {
  if (updates == 0) return 1;
  if (!options.is_exponential()) return 1.0 / double(updates + 1);
  return -std::expm1(-std::numbers::ln2 * double(tokens) / options.half_life.value);  // exact for small ones, too
}

Averages::Averages(const std::vector<AverageOptions>& options, ShardedParameters& parameters, MemoryPlan& plan)
    : parameters_(parameters) {
  for (const AverageOptions& one : options) {
    StateTensor state = state_of_all_weights(str(kAveragePrefix, one.name), parameters);
    state.in_host_memory = true;
    slots_.push_back(plan.add(state.name, state.tensor.dtype(), state.tensor.shape(), MemoryKind::kPinned));
    state_.push_back(std::move(state));
  }
}

void Averages::commit(const Arena& arena, Stream& stream) {
  for (size_t i = 0; i < state_.size(); ++i) {
    state_[i].tensor = arena[slots_[i]];
    parameters_.backend().ops->fill(stream, {.x = state_[i].tensor, .value = 0});
  }
}

void Averages::update(const std::vector<double>& weights, Stream& stream) {
  Ops& ops = *parameters_.backend().ops;
  for (size_t i = 0; i < weights.size(); ++i) {
    const Tensor master = parameters_.master(), average = state_.at(i).tensor;
    if (weights[i] == 1) {
      ops.cast(stream, {.src = master, .dst = average});  // exact, as E + (W - E) is not
    } else if (weights[i] > 0) {
      ops.average(stream, {.x = master, .average = average, .weight = weights[i]});
    }
  }
}

void Averages::with(size_t i, Stream& stream, const std::function<void()>& use) {
  parameters_.substitute_masters(state_.at(i).tensor, stream);
  try {
    use();
  } catch (...) {
    parameters_.restore_masters(stream);
    throw;
  }
  parameters_.restore_masters(stream);
}

}  // namespace tokamak

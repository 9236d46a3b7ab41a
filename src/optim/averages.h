// Averages of the weights over a run: f32 slices in host memory, named state like an optimizer's. Which step updates
// them, and with which weight, is up to train/average_updates.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "optim/optimizer.h"
#include "optim/options.h"
#include "zero/sharded_parameters.h"

namespace tokamak {

// The weight w of an average's next update E <- E + w (W - E), for W the masters. `updates`: those before it; `tokens`:
// trained on since the last one. The first update has weight 1: E = W.
//   exponential  1 - 0.5^(tokens / half_life)
//   mean         1 / (updates + 1)      (stochastic weight averaging, Izmailov et al. 2018)
double average_weight(const AverageOptions& options, int64_t updates, int64_t tokens);

class Averages {
 public:
  // Plans "average/NAME" of each, pinned. `parameters` outlives this.
  Averages(const std::vector<AverageOptions>& options, ShardedParameters& parameters, MemoryPlan& plan);
  void commit(const Arena& arena, Stream& stream);  // zeros them

  // Enqueues the update of each average with its weight, after the optimizer's on the same stream. 0: no update.
  void update(const std::vector<double>& weights, Stream& stream);
  // Calls `use` while the model computes with average `i` in place of the masters (substitute_masters). Leaves masters,
  // compute copies and averages as they were, to the bit, even if `use` throws.
  void with(size_t i, Stream& stream, const std::function<void()>& use);

  const std::vector<StateTensor>& state() const { return state_; }  // in the order of the options

 private:
  ShardedParameters& parameters_;
  std::vector<StateTensor> state_;
  std::vector<MemoryPlan::Slot> slots_;
};

}  // namespace tokamak

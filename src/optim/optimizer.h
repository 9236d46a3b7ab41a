// The interface of optimizers, and the table from which the config chooses one. An optimizer updates this rank's flat
// shard; checkpoints, snapshots, memory plans and bytes of the state follow from the state() that it lists.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "optim/options.h"
#include "optim/weight_rules.h"
#include "zero/sharded_parameters.h"
#include "zero/state_tensor.h"

namespace tokamak {

// The state with this name of all weights; its tensor has no data.
StateTensor state_of_all_weights(std::string name, const ShardedParameters& parameters);

struct UpdateStep {
  int64_t t = 1;   // 1, 2, ... since the state was zero
  double lr = 0;   // of this step
  Tensor control;  // (kStepControls) f32: gradient scale and skip flag (ops.h, StepControl)
  Tensor updates;  // (shard_elements) f32: the change of each master; may be empty, or gradients()
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Plans the state as "optimizer/<name>". `parameters` outlives this.
  virtual void plan(ShardedParameters& parameters, MemoryPlan& plan);
  virtual void commit(const Arena& arena);
  // Enqueues the update of masters, compute copies and state, in the order of parameters.update_parts().
  virtual void step(Stream& stream, const UpdateStep& step) = 0;

  // The state besides the masters. Zeros before the first step.
  const std::vector<StateTensor>& state() const { return state_; }
  // Bytes of the whole model in checkpoints and snapshots: the f32 masters and state().
  int64_t saved_bytes(const ParamTable& table) const;

 protected:
  struct StateKind {
    const char* name;
    DType dtype;
    const char* optimizer = nullptr;  // of the weights that have it (WeightRule); nullptr: all have it
  };
  Optimizer(OptimizerOptions options, std::vector<StateKind> kinds);
  const OptimizerOptions& options() const { return options_; }
  ShardedParameters& parameters() const { return *parameters_; }  // after plan()
  const WeightRules& rules() const { return rules_; }             // likewise

 private:
  OptimizerOptions options_;
  std::vector<StateKind> kinds_;
  std::vector<StateTensor> state_;
  std::vector<MemoryPlan::Slot> slots_;
  ShardedParameters* parameters_ = nullptr;
  WeightRules rules_;
};

// `seed`: for the optimizer's random numbers.
using OptimizerMaker = std::unique_ptr<Optimizer> (*)(const OptimizerOptions& options, uint64_t seed);

std::unique_ptr<Optimizer> make_rule_optimizer(const OptimizerOptions& options, uint64_t seed);  // rule_optimizer.cc

// Keyed by optimizer.name. Tests add entries before they start ranks.
std::map<std::string, OptimizerMaker>& optimizer_makers();

// Makes the optimizer that the options name, and plans its state.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options, uint64_t seed, ShardedParameters& parameters,
                                          MemoryPlan& plan);

// Optimizer::saved_bytes() of the optimizer that the options name, and the bytes of this many averages (averages.h).
int64_t saved_bytes(const OptimizerOptions& options, const ParamTable& table, int64_t averages = 0);

}  // namespace tokamak

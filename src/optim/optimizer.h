// The interface of optimizers, and the table from which the config chooses one. An optimizer updates this rank's flat
// shard; checkpoints, snapshots, memory plans and bytes a parameter follow from the state() that it lists.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "optim/options.h"
#include "zero/sharded_parameters.h"

namespace tokamak {

// A named part of a run's state on this rank. Checkpoints store it under this name.
struct StateTensor {
  std::string name;
  Tensor tensor;  // (shard_elements) f32 or bf16; without elements before plan(), without data before commit()
};

struct UpdateStep {
  int64_t t = 1;   // 1, 2, ...
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

 protected:
  struct StateKind {
    const char* name;
    DType dtype;
  };
  Optimizer(std::initializer_list<StateKind> kinds);
  ShardedParameters& parameters() const { return *parameters_; }  // after plan()

 private:
  std::vector<StateTensor> state_;
  std::vector<MemoryPlan::Slot> slots_;
  ShardedParameters* parameters_ = nullptr;
};

// `seed`: for the optimizer's random numbers.
using OptimizerMaker = std::unique_ptr<Optimizer> (*)(const OptimizerOptions& options, uint64_t seed);

std::unique_ptr<Optimizer> make_adamw(const OptimizerOptions& options, uint64_t seed);  // adamw.cc

// Keyed by optimizer.name. Tests add entries before they start ranks.
std::map<std::string, OptimizerMaker>& optimizer_makers();

// Makes the optimizer that the options name, and plans its state.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options, uint64_t seed, ShardedParameters& parameters,
                                          MemoryPlan& plan);

// Bytes of a parameter in checkpoints and snapshots: the f32 master and state().
int64_t saved_bytes_per_parameter(const OptimizerOptions& options);

}  // namespace tokamak

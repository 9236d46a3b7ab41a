// AdamW over this rank's shard: fp32 moments and masters, part by part in the order in which the weights are needed next.
// Norm weights never decay; the embedding and the head do unless configured otherwise.
#pragma once

#include <vector>

#include "optim/options.h"
#include "zero/sharded_parameters.h"

namespace tokamak {

class AdamWOptimizer {
 public:
  AdamWOptimizer(const OptimizerOptions& options, ShardedParameters& parameters, MemoryPlan& plan);
  void commit(const Arena& arena);

  // Step t = 1, 2, ... with this learning rate; `control` (ops.h, StepControl) has the scale and the skip flag.
  // `updates` (shard_elements) f32, may be empty or the gradients themselves: what each master has changed by.
  void step(Stream& stream, int64_t t, double lr, Tensor control, Tensor updates = {});

  Tensor exp_avg() const { return exp_avg_; }        // (shard_elements) f32
  Tensor exp_avg_sq() const { return exp_avg_sq_; }  // (shard_elements) f32

 private:
  OptimizerOptions options_;
  ShardedParameters& parameters_;
  struct Part {
    UpdatePart range;
    std::vector<AdamW::Group> groups;
  };
  std::vector<Part> parts_;
  MemoryPlan::Slot exp_avg_slot_, exp_avg_sq_slot_;
  Tensor exp_avg_, exp_avg_sq_;
};

}  // namespace tokamak

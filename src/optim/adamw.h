// AdamW over this rank's shard: fp32 masters, fp32 or bf16 moments, part by part in the order in which the weights are
// needed next. Norm weights never decay; the embedding and the head do unless configured otherwise.
// bf16 moments are rounded at random (ops.h). An element draws by its index in the flat units of the whole model, one unit
// after the other, so ranks, stages and resumes change no bit; padding has no index and is not updated.
#pragma once

#include <cstdint>
#include <vector>

#include "optim/options.h"
#include "zero/sharded_parameters.h"

namespace tokamak {

class AdamWOptimizer {
 public:
  // `seed`: of the draws that round bf16 moments.
  AdamWOptimizer(const OptimizerOptions& options, ShardedParameters& parameters, MemoryPlan& plan, uint64_t seed = 0);
  void commit(const Arena& arena);

  // Step t = 1, 2, ... with this learning rate; `control` (ops.h, StepControl) has the scale and the skip flag.
  // `updates` (shard_elements) f32, may be empty or the gradients themselves: what each master has changed by.
  void step(Stream& stream, int64_t t, double lr, Tensor control, Tensor updates = {});

  DType moment_dtype() const { return options_.moments == MomentType::kBF16 ? DType::kBF16 : DType::kF32; }
  Tensor exp_avg() const { return exp_avg_; }        // (shard_elements) f32 or bf16
  Tensor exp_avg_sq() const { return exp_avg_sq_; }  // the same

 private:
  // Elements [begin, end) of the shard, whose indices in the model are consecutive from `first` on.
  struct Call {
    int64_t begin = 0, end = 0, first = 0;
    std::vector<AdamW::Group> groups = {};
  };
  struct Part {
    UpdatePart range;
    std::vector<Call> calls;
  };
  void add_call(Part& part, Call call) const;  // with its groups

  OptimizerOptions options_;
  uint64_t seed_;
  ShardedParameters& parameters_;
  std::vector<Part> parts_;
  MemoryPlan::Slot exp_avg_slot_, exp_avg_sq_slot_;
  Tensor exp_avg_, exp_avg_sq_;
};

}  // namespace tokamak

// AdamW (Loshchilov and Hutter 2019) on the weights whose rule names it: f32 masters, f32 or bf16 moments.
// bf16 moments are rounded at random (ops.h), by an element's index in the flat units of the whole model. So the number
// of ranks, the ZeRO stage and resumes change no bit.
#pragma once

#include <cstdint>
#include <vector>

#include "optim/optimizer.h"

namespace tokamak {

class AdamWUpdate {
 public:
  // Plans the calls of each of parameters.update_parts(). `moments`: exp_avg, which lies like exp_avg_sq.
  AdamWUpdate(const OptimizerOptions& options, uint64_t seed, const ShardedParameters& parameters,
              const WeightRules& rules, const StateTensor& moments);

  // Enqueues the update of one part.
  void run(size_t part, ShardedParameters& parameters, Stream& stream, const UpdateStep& step, Tensor exp_avg,
           Tensor exp_avg_sq) const;

 private:
  // Elements [begin, end) of the shard with one learning rate and eps, which lie in the moments from `moments` on.
  struct Call {
    int64_t begin = 0, end = 0;
    int64_t moments = 0;
    int64_t first = 0;  // index of the first in the model
    double lr_scale = 1, eps = 0;
    std::vector<AdamW::Group> groups = {};
  };

  OptimizerOptions options_;
  uint64_t seed_;
  std::vector<std::vector<Call>> parts_;
};

}  // namespace tokamak

#include "optim/adamw.h"

#include <algorithm>
#include <cmath>

namespace tokamak {

AdamWOptimizer::AdamWOptimizer(const OptimizerOptions& options, ShardedParameters& parameters, MemoryPlan& plan)
    : options_(options), parameters_(parameters) {
  for (const UpdatePart& part : parameters.update_parts()) {
    parts_.push_back({part, {}});
    for (const ShardRange& range : parameters.ranges()) {
      if (std::max(range.begin, part.begin) >= std::min(range.end, part.end)) continue;
      const bool decays = range.decay == Decay::kYes && (!range.embedding || options.decay_embeddings);
      parts_.back().groups.push_back({std::min(range.end, part.end) - part.begin, decays ? options.weight_decay : 0.0});
    }
  }
  exp_avg_slot_ = plan.add("optimizer/exp_avg", DType::kF32, Shape{parameters.shard_elements()});
  exp_avg_sq_slot_ = plan.add("optimizer/exp_avg_sq", DType::kF32, Shape{parameters.shard_elements()});
}

void AdamWOptimizer::commit(const Arena& arena) {
  exp_avg_ = arena[exp_avg_slot_];
  exp_avg_sq_ = arena[exp_avg_sq_slot_];
}

void AdamWOptimizer::step(Stream& stream, int64_t t, double lr, Tensor control, Tensor updates) {
  const auto [beta1, beta2] = options_.betas;
  const bool copies = parameters_.weights().dtype() != DType::kF32;
  parameters_.begin_update(stream);
  for (const auto& [range, groups] : parts_) {
    const auto part = [&range = range](const Tensor& shard) { return shard.flat(range.begin, range.end); };
    parameters_.backend().ops->adamw(stream, {.master = part(parameters_.master()),
                                              .exp_avg = part(exp_avg_),
                                              .exp_avg_sq = part(exp_avg_sq_),
                                              .grad = part(parameters_.gradients()),
                                              .weights = copies ? part(parameters_.weights()) : Tensor(),
                                              .control = control,
                                              .groups = groups,
                                              .updates = updates ? part(updates) : Tensor(),
                                              .lr = lr,
                                              .beta1 = beta1,
                                              .beta2 = beta2,
                                              .eps = options_.eps,
                                              .bias1 = 1.0 - std::pow(beta1, static_cast<double>(t)),
                                              .bias2 = 1.0 - std::pow(beta2, static_cast<double>(t))});
    parameters_.updated(range, stream);
  }
}

}  // namespace tokamak

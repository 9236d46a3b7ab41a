#include "optim/adamw.h"

#include <cmath>

namespace tokamak {

AdamWOptimizer::AdamWOptimizer(const OptimizerOptions& options, ShardedParameters& parameters, MemoryPlan& plan)
    : options_(options), parameters_(parameters) {
  for (const ShardRange& range : parameters.ranges()) {
    const bool decays = range.decay == Decay::kYes && (!range.embedding || options.decay_embeddings);
    groups_.push_back({range.end, decays ? options.weight_decay : 0.0});
  }
  exp_avg_slot_ = plan.add("optimizer/exp_avg", DType::kF32, Shape{parameters.shard_elements()});
  exp_avg_sq_slot_ = plan.add("optimizer/exp_avg_sq", DType::kF32, Shape{parameters.shard_elements()});
}

void AdamWOptimizer::commit(const Arena& arena) {
  exp_avg_ = arena[exp_avg_slot_];
  exp_avg_sq_ = arena[exp_avg_sq_slot_];
}

void AdamWOptimizer::step(Stream& stream, int64_t t, double lr, Tensor control) {
  const auto [beta1, beta2] = options_.betas;
  const bool copies = parameters_.weights().dtype() != DType::kF32;
  parameters_.backend().ops->adamw(stream, {.master = parameters_.master(),
                                            .exp_avg = exp_avg_,
                                            .exp_avg_sq = exp_avg_sq_,
                                            .grad = parameters_.gradients(),
                                            .weights = copies ? parameters_.weights() : Tensor(),
                                            .control = control,
                                            .groups = groups_,
                                            .lr = lr,
                                            .beta1 = beta1,
                                            .beta2 = beta2,
                                            .eps = options_.eps,
                                            .bias1 = 1.0 - std::pow(beta1, static_cast<double>(t)),
                                            .bias2 = 1.0 - std::pow(beta2, static_cast<double>(t))});
  parameters_.weights_changed();
}

}  // namespace tokamak

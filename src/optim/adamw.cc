#include "optim/adamw.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tensor/unit_layout.h"

namespace tokamak {

AdamWOptimizer::AdamWOptimizer(const OptimizerOptions& options, ShardedParameters& parameters, MemoryPlan& plan,
                               uint64_t seed)
    : options_(options), seed_(seed), parameters_(parameters) {
  for (const UpdatePart& range : parameters.update_parts()) {
    Part& part = parts_.emplace_back(Part{range, {}});
    if (moment_dtype() == DType::kF32) {
      add_call(part, {range.begin, range.end});
      continue;
    }
    int64_t unit_first = 0;  // index in the model
    for (size_t u = 0; u < parameters.table().units.size(); ++u) {
      const UnitLayout layout(parameters.table().units[u]);
      const int64_t begin = parameters.slice_begin(static_cast<int64_t>(u));
      const int64_t slice = parameters.slice_elements(static_cast<int64_t>(u));
      const int64_t before = parameters.mesh().shard().rank() * slice;  // elements of the unit on lower ranks
      const int64_t own = std::clamp(layout.count - before, int64_t{0}, slice);
      if (range.begin <= begin && begin < range.end && own > 0) {
        add_call(part, {begin, begin + own, unit_first + before});
      }
      unit_first += layout.slice(1);  // aligned, as slices are: the CUDA kernel draws for four elements at once
    }
  }
  exp_avg_slot_ = plan.add("optimizer/exp_avg", moment_dtype(), Shape{parameters.shard_elements()});
  exp_avg_sq_slot_ = plan.add("optimizer/exp_avg_sq", moment_dtype(), Shape{parameters.shard_elements()});
}

void AdamWOptimizer::add_call(Part& part, Call call) const {
  for (const ShardRange& range : parameters_.ranges()) {
    const int64_t end = std::min(range.end, call.end);
    if (std::max(range.begin, call.begin) >= end) continue;
    const bool decays = range.decay == Decay::kYes && (!range.embedding || options_.decay_embeddings);
    call.groups.push_back({end - call.begin, decays ? options_.weight_decay : 0.0});
  }
  part.calls.push_back(std::move(call));
}

void AdamWOptimizer::commit(const Arena& arena) {
  exp_avg_ = arena[exp_avg_slot_];
  exp_avg_sq_ = arena[exp_avg_sq_slot_];
}

void AdamWOptimizer::step(Stream& stream, int64_t t, double lr, Tensor control, Tensor updates) {
  const auto [beta1, beta2] = options_.betas;
  const bool copies = parameters_.weights().dtype() != DType::kF32;
  parameters_.begin_update(stream);
  for (const Part& part : parts_) {
    for (const Call& call : part.calls) {
      const auto own = [&](const Tensor& shard) { return shard.flat(call.begin, call.end); };
      parameters_.backend().ops->adamw(stream, {.master = own(parameters_.master()),
                                                .exp_avg = own(exp_avg_),
                                                .exp_avg_sq = own(exp_avg_sq_),
                                                .grad = own(parameters_.gradients()),
                                                .weights = copies ? own(parameters_.weights()) : Tensor(),
                                                .control = control,
                                                .groups = call.groups,
                                                .updates = updates ? own(updates) : Tensor(),
                                                .rounding = {.seed = seed_, .first = call.first, .step = t},
                                                .lr = lr,
                                                .beta1 = beta1,
                                                .beta2 = beta2,
                                                .eps = options_.eps,
                                                .bias1 = 1.0 - std::pow(beta1, static_cast<double>(t)),
                                                .bias2 = 1.0 - std::pow(beta2, static_cast<double>(t))});
    }
    parameters_.updated(part.range, stream);
  }
}

}  // namespace tokamak

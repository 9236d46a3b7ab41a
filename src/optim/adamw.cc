// AdamW (Loshchilov and Hutter 2019): f32 masters, f32 or bf16 moments. Norm weights and biases never decay; the
// embedding and the head decay unless configured otherwise.
// bf16 moments are rounded at random (ops.h), by an element's index in the flat units of the whole model. So the number
// of ranks, the ZeRO stage and resumes change no bit. Padding has no index and is not updated.
#include <algorithm>
#include <cmath>
#include <utility>

#include "optim/optimizer.h"
#include "tensor/unit_layout.h"

namespace tokamak {

namespace {

DType moment_dtype(const OptimizerOptions& options) {
  return options.moments == MomentType::kBF16 ? DType::kBF16 : DType::kF32;
}

class AdamWOptimizer final : public Optimizer {
 public:
  AdamWOptimizer(const OptimizerOptions& options, uint64_t seed)
      : Optimizer({{"exp_avg", moment_dtype(options)}, {"exp_avg_sq", moment_dtype(options)}}),
        options_(options),
        seed_(seed) {}

  void plan(ShardedParameters& parameters, MemoryPlan& plan) override;
  void step(Stream& stream, const UpdateStep& step) override;

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
  void add_call(Part& part, Call call) const;  // adds it with its weight decay groups

  OptimizerOptions options_;
  uint64_t seed_;
  std::vector<Part> parts_;
};

void AdamWOptimizer::plan(ShardedParameters& parameters, MemoryPlan& plan) {
  Optimizer::plan(parameters, plan);
  for (const UpdatePart& range : parameters.update_parts()) {
    Part& part = parts_.emplace_back(Part{range, {}});
    if (moment_dtype(options_) == DType::kF32) {
      add_call(part, {range.begin, range.end});
      continue;
    }
    int64_t unit_first = 0;  // index in the model
    for (int64_t u = 0; const Unit& unit : parameters.table().units) {
      const UnitLayout layout(unit);
      const int64_t begin = parameters.slice_begin(u), slice = parameters.slice_elements(u);
      const int64_t before = parameters.mesh().shard().rank() * slice;  // elements of the unit on lower ranks
      const int64_t own = std::clamp(layout.count - before, int64_t{0}, slice);
      if (range.begin <= begin && begin < range.end && own > 0) {
        add_call(part, {begin, begin + own, unit_first + before});
      }
      unit_first += layout.slice(1);  // aligned, as slices are: the CUDA kernel draws for four elements at once
      ++u;
    }
  }
}

void AdamWOptimizer::add_call(Part& part, Call call) const {
  for (const ShardRange& range : parameters().ranges()) {
    const int64_t end = std::min(range.end, call.end);
    if (std::max(range.begin, call.begin) >= end) continue;
    const bool decays = range.decay == Decay::kYes && (!range.embedding || options_.decay_embeddings);
    call.groups.push_back({end - call.begin, decays ? options_.weight_decay : 0.0});
  }
  part.calls.push_back(std::move(call));
}

void AdamWOptimizer::step(Stream& stream, const UpdateStep& step) {
  ShardedParameters& p = parameters();
  const auto [beta1, beta2] = options_.betas;
  const auto t = double(step.t);
  const bool copies = p.weights().dtype() != DType::kF32;
  p.begin_update(stream);
  for (const Part& part : parts_) {
    for (const Call& call : part.calls) {
      const auto own = [&](const Tensor& shard) { return shard.flat(call.begin, call.end); };
      p.backend().ops->adamw(stream, {.master = own(p.master()),
                                      .exp_avg = own(state()[0].tensor),
                                      .exp_avg_sq = own(state()[1].tensor),
                                      .grad = own(p.gradients()),
                                      .weights = copies ? own(p.weights()) : Tensor(),
                                      .control = step.control,
                                      .groups = call.groups,
                                      .updates = step.updates ? own(step.updates) : Tensor(),
                                      .rounding = {.seed = seed_, .first = call.first, .step = step.t},
                                      .lr = step.lr,
                                      .beta1 = beta1,
                                      .beta2 = beta2,
                                      .eps = options_.eps,
                                      .bias1 = 1.0 - std::pow(beta1, t),
                                      .bias2 = 1.0 - std::pow(beta2, t)});
    }
    p.updated(part.range, stream);
  }
}

}  // namespace

std::unique_ptr<Optimizer> make_adamw(const OptimizerOptions& options, uint64_t seed) {
  return std::make_unique<AdamWOptimizer>(options, seed);
}

}  // namespace tokamak

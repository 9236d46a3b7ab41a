#include "optim/optimizer.h"

namespace tokamak {

Optimizer::Optimizer(std::initializer_list<StateKind> kinds) {
  for (const auto& [name, dtype] : kinds) state_.push_back({name, {nullptr, dtype, Shape{0}}});
}

void Optimizer::plan(ShardedParameters& parameters, MemoryPlan& plan) {
  parameters_ = &parameters;
  for (auto& [name, tensor] : state_) {
    tensor = {nullptr, tensor.dtype(), Shape{parameters.shard_elements()}};
    slots_.push_back(plan.add("optimizer/" + name, tensor.dtype(), tensor.shape()));
  }
}

void Optimizer::commit(const Arena& arena) {
  for (size_t i = 0; i < state_.size(); ++i) state_[i].tensor = arena[slots_[i]];
}

std::map<std::string, OptimizerMaker>& optimizer_makers() {
  static std::map<std::string, OptimizerMaker> makers = {{"adamw", make_adamw}};
  return makers;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options, uint64_t seed, ShardedParameters& parameters,
                                          MemoryPlan& plan) {
  auto optimizer = optimizer_makers().at(options.name)(options, seed);
  optimizer->plan(parameters, plan);
  return optimizer;
}

int64_t saved_bytes_per_parameter(const OptimizerOptions& options) {
  const std::unique_ptr<Optimizer> optimizer = optimizer_makers().at(options.name)(options, 0);
  int64_t bytes = size_of(DType::kF32);
  for (const StateTensor& state : optimizer->state()) bytes += size_of(state.tensor.dtype());
  return bytes;
}

}  // namespace tokamak

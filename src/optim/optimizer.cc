#include "optim/optimizer.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "tensor/unit_layout.h"

namespace tokamak {

namespace {

// The weights of a unit whose rule names `optimizer`; nullptr: all.
std::vector<bool> weights_of(const std::vector<WeightRule>& rules, const char* optimizer) {
  std::vector<bool> weights;
  for (const WeightRule& rule : rules) weights.push_back(optimizer == nullptr || rule.optimizer == optimizer);
  return weights;
}

bool any(const std::vector<bool>& weights) { return std::find(weights.begin(), weights.end(), true) != weights.end(); }

// Lays out the slices of the units that have weights with this state.
StateTensor lay_out(std::string name, DType dtype, const char* optimizer, const WeightRules& rules,
                    const ShardedParameters& parameters) {
  StateTensor state{.name = std::move(name), .tensor = {}, .units = {}};
  int64_t elements = 0;
  for (int64_t u = 0; const std::vector<WeightRule>& of_unit : rules) {
    StateUnit& unit = state.units.emplace_back(StateUnit{StateUnit::kNone, weights_of(of_unit, optimizer)});
    if (any(unit.weights)) {
      unit.begin = elements;
      elements += parameters.slice_elements(u);
    }
    ++u;
  }
  state.tensor = {nullptr, dtype, Shape{elements}};
  return state;
}

}  // namespace

StateTensor state_of_all_weights(std::string name, const ShardedParameters& parameters) {
  WeightRules rules;
  for (const Unit& unit : parameters.table().units) rules.emplace_back(flat_params(unit).size());
  return lay_out(std::move(name), DType::kF32, nullptr, rules, parameters);
}

Optimizer::Optimizer(OptimizerOptions options, std::vector<StateKind> kinds)
    : options_(std::move(options)), kinds_(std::move(kinds)) {}

void Optimizer::plan(ShardedParameters& parameters, MemoryPlan& plan) {
  parameters_ = &parameters;
  rules_ = weight_rules(options_, parameters.table());
  for (const auto& [name, dtype, optimizer] : kinds_) {
    StateTensor state = lay_out(name, dtype, optimizer, rules_, parameters);
    if (state.tensor.count() == 0) continue;
    slots_.push_back(plan.add(str("optimizer/", name), dtype, state.tensor.shape()));
    state_.push_back(std::move(state));
  }
}

void Optimizer::commit(const Arena& arena) {
  for (size_t i = 0; i < state_.size(); ++i) state_[i].tensor = arena[slots_[i]];
}

int64_t Optimizer::saved_bytes(const ParamTable& table) const {
  const WeightRules rules = weight_rules(options_, table);
  int64_t bytes = table.count() * size_of(DType::kF32);
  for (const auto& [name, dtype, optimizer] : kinds_) {
    for (size_t u = 0; u < rules.size(); ++u) {
      if (any(weights_of(rules[u], optimizer))) bytes += table.units[u].count() * size_of(dtype);
    }
  }
  return bytes;
}

std::map<std::string, OptimizerMaker>& optimizer_makers() {
  static std::map<std::string, OptimizerMaker> makers = {{"adamw", make_rule_optimizer}, {"muon", make_rule_optimizer}};
  return makers;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options, uint64_t seed, ShardedParameters& parameters,
                                          MemoryPlan& plan) {
  auto optimizer = optimizer_makers().at(options.name)(options, seed);
  optimizer->plan(parameters, plan);
  return optimizer;
}

int64_t saved_bytes(const OptimizerOptions& options, const ParamTable& table, int64_t averages) {
  const int64_t bytes_of_averages = averages * table.count() * size_of(DType::kF32);
  return optimizer_makers().at(options.name)(options, 0)->saved_bytes(table) + bytes_of_averages;
}

}  // namespace tokamak

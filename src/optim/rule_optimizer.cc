// Updates every weight by its rule (weight_rules.h): AdamW or Muon.
#include <optional>
#include <utility>

#include "optim/adamw.h"
#include "optim/muon.h"
#include "optim/optimizer.h"
#include "optim/own_weights.h"

namespace tokamak {

namespace {

DType moment_dtype(const OptimizerOptions& options) {
  return options.moments == MomentType::kBF16 ? DType::kBF16 : DType::kF32;
}

class RuleOptimizer final : public Optimizer {
 public:
  RuleOptimizer(const OptimizerOptions& options, uint64_t seed)
      : Optimizer(options, {{"exp_avg", moment_dtype(options), "adamw"},
                            {"exp_avg_sq", moment_dtype(options), "adamw"},
                            {"momentum", moment_dtype(options), "muon"}}),
        seed_(seed) {}

  void plan(ShardedParameters& parameters, MemoryPlan& plan) override {
    Optimizer::plan(parameters, plan);
    parts_ = parameters.update_parts();
    for (const OwnWeight& piece : own_weights(parameters)) {
      if (rules().at(static_cast<size_t>(piece.unit)).at(piece.weight).frozen()) frozen_.push_back(piece);
    }
    if (const StateTensor* exp_avg = find("exp_avg")) {
      adamw_.emplace(options(), seed_, parameters, rules(), *exp_avg);
    }
    if (const StateTensor* momentum = find("momentum")) {
      muon_.emplace(options(), seed_, parameters, rules(), *momentum, plan);
    }
  }

  void commit(const Arena& arena) override {
    Optimizer::commit(arena);
    if (muon_) muon_->commit(arena, find("momentum")->tensor);
  }

  void step(Stream& stream, const UpdateStep& step) override {
    ShardedParameters& p = parameters();
    p.begin_update(stream);
    for (const OwnWeight& piece : frozen_) {
      if (step.updates) p.backend().ops->fill(stream, {.x = step.updates.flat(piece.begin, piece.end), .value = 0});
    }
    if (muon_) muon_->begin();
    for (size_t part = 0; part < parts_.size(); ++part) {
      if (adamw_) adamw_->run(part, p, stream, step, find("exp_avg")->tensor, find("exp_avg_sq")->tensor);
      if (muon_) muon_->finish(parts_[part], stream, step);
      p.updated(parts_[part], stream);
    }
  }

 private:
  const StateTensor* find(std::string_view name) const {
    for (const StateTensor& one : state()) {
      if (one.name == name) return &one;
    }
    return nullptr;
  }

  uint64_t seed_;
  std::vector<UpdatePart> parts_;
  std::vector<OwnWeight> frozen_;
  std::optional<AdamWUpdate> adamw_;
  std::optional<Muon> muon_;
};

}  // namespace

std::unique_ptr<Optimizer> make_rule_optimizer(const OptimizerOptions& options, uint64_t seed) {
  return std::make_unique<RuleOptimizer>(options, seed);
}

}  // namespace tokamak

#include "optim/adamw.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "optim/own_weights.h"

namespace tokamak {

namespace {

// The pieces that calls join. f32 moments take the whole slice of a unit with one rule, so that all ranks make the same
// calls; its padding stays zero.
std::vector<OwnWeight> pieces_of(const ShardedParameters& parameters, const WeightRules& rules, DType moments) {
  std::vector<OwnWeight> own = own_weights(parameters);
  if (moments != DType::kF32) return own;
  std::vector<OwnWeight> pieces;
  for (int64_t u = 0; const std::vector<WeightRule>& of_unit : rules) {
    if (std::all_of(of_unit.begin(), of_unit.end(), [&](const WeightRule& rule) { return rule == of_unit[0]; })) {
      const int64_t begin = parameters.slice_begin(u);
      pieces.push_back({.unit = u, .begin = begin, .end = begin + parameters.slice_elements(u)});
    } else {
      std::copy_if(own.begin(), own.end(), std::back_inserter(pieces),
                   [&](const OwnWeight& one) { return one.unit == u; });
    }
    ++u;
  }
  return pieces;
}

}  // namespace

AdamWUpdate::AdamWUpdate(const OptimizerOptions& options, uint64_t seed, const ShardedParameters& parameters,
                         const WeightRules& rules, const StateTensor& moments)
    : options_(options), seed_(seed) {
  const std::vector<OwnWeight> own = pieces_of(parameters, rules, moments.tensor.dtype());
  const bool draws = moments.tensor.dtype() == DType::kBF16;  // by index, which begins anew in each unit
  for (const UpdatePart& part : parameters.update_parts()) {
    std::vector<Call>& calls = parts_.emplace_back();
    const OwnWeight* last = nullptr;  // of the last call
    for (const OwnWeight& piece : own) {
      const WeightRule& rule = rules.at(static_cast<size_t>(piece.unit)).at(piece.weight);
      if (piece.begin < part.begin || piece.begin >= part.end) continue;
      if (rule.optimizer != "adamw" || rule.frozen()) continue;
      const StateUnit& held = moments.units.at(static_cast<size_t>(piece.unit));
      const int64_t at = held.begin + piece.begin - parameters.slice_begin(piece.unit);  // in the moments
      const bool follows = last != nullptr && last + 1 == &piece && calls.back().lr_scale == rule.lr_scale &&
                           calls.back().eps == rule.eps &&
                           at - piece.begin == calls.back().moments - calls.back().begin &&
                           (last->unit == piece.unit || (!draws && calls.back().end == piece.begin));
      const bool decays_alike = follows && calls.back().groups.back().weight_decay == rule.weight_decay;
      if (!follows || (!decays_alike && calls.back().groups.size() == AdamW::kMostGroups)) {
        calls.push_back(
            {.begin = piece.begin, .moments = at, .first = piece.index, .lr_scale = rule.lr_scale, .eps = rule.eps});
      }
      Call& call = calls.back();
      call.end = piece.end;
      if (decays_alike && !call.groups.empty()) {
        call.groups.back().end = call.end - call.begin;
      } else {
        call.groups.push_back({call.end - call.begin, rule.weight_decay});
      }
      last = &piece;
    }
  }
}

void AdamWUpdate::run(size_t part, ShardedParameters& parameters, Stream& stream, const UpdateStep& step,
                      Tensor exp_avg, Tensor exp_avg_sq) const {
  Ops& ops = *parameters.backend().ops;
  const auto [beta1, beta2] = options_.betas;
  const auto t = double(step.t);
  const bool copies = parameters.compute() != DType::kF32;
  for (const Call& call : parts_[part]) {
    const auto own = [&](const Tensor& shard) { return shard.flat(call.begin, call.end); };
    const auto moment = [&](const Tensor& all) { return all.flat(call.moments, call.moments + call.end - call.begin); };
    ops.adamw(stream, {.master = own(parameters.master()),
                       .exp_avg = moment(exp_avg),
                       .exp_avg_sq = moment(exp_avg_sq),
                       .grad = own(parameters.gradients()),
                       .weights = copies ? own(parameters.weights()) : Tensor(),
                       .control = step.control,
                       .groups = call.groups,
                       .updates = step.updates ? own(step.updates) : Tensor(),
                       .rounding = {.seed = seed_, .first = call.first, .step = step.t},
                       .lr = step.lr * call.lr_scale,
                       .beta1 = beta1,
                       .beta2 = beta2,
                       .eps = call.eps,
                       .bias1 = 1.0 - std::pow(beta1, t),
                       .bias2 = 1.0 - std::pow(beta2, t)});
  }
}

}  // namespace tokamak

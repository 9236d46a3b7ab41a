#include "optim/weight_rules.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "tensor/unit_layout.h"

namespace tokamak {

namespace {

bool is_embedding(const Unit& unit) { return unit.kind == UnitKind::kEmbedding || unit.kind == UnitKind::kHead; }

WeightRule rule_of_kind(const OptimizerOptions& options, const Unit& unit, const Param& param) {
  const bool decays = param.decay == Decay::kYes && (!is_embedding(unit) || options.decay_embeddings);
  const bool is_matrix = param.shape.rank() == 2 && !is_embedding(unit);
  return {.optimizer = is_matrix ? options.name : "adamw",
          .lr_scale = 1,
          .weight_decay = decays ? options.weight_decay : 0.0,
          .eps = options.eps};
}

std::vector<std::string> names_of(const ParamTable& table) {
  std::vector<std::string> names;
  for (const Unit& unit : table.units) {
    for (const FlatParam& flat : flat_params(unit)) names.push_back(flat.param->name);
  }
  return names;
}

bool matches(const OptimizerGroup& group, const std::string& name) {
  return std::any_of(group.match.begin(), group.match.end(),
                     [&](const std::string& pattern) { return fits_pattern(pattern, name); });
}

void apply(const OptimizerGroup& group, const std::string& key, const Unit& unit, const Param& param,
           WeightRule& rule) {
  if (!group.name.empty()) rule.optimizer = group.name;
  rule.lr_scale = group.lr_scale;
  if (!group.weight_decay.is_auto()) rule.weight_decay = group.weight_decay.value;
  if (rule.optimizer != "muon" || (param.shape.rank() == 2 && !is_embedding(unit))) return;
  fail(Kind::kConfig,
       str(key, ".name is muon for '", param.name, "' ", param.shape.text(),
           ": Muon updates the matrices of layers, not vectors, the embedding or the head"),
       "narrow the pattern, or give these weights a group before it");
}

// Muon's learning rate divided by AdamW's. The scale of match_rms_adamw itself grows with the root of the width.
double muon_factor(const OptimizerOptions& options, const WeightRule& rule, double fan_in) {
  if (rule.optimizer != "muon") return 1;
  return options.muon.scale == MuonScale::kMatchRmsAdamW ? std::sqrt(fan_in) : fan_in;
}

void scale(const OptimizerOptions& options, const UpdateScale& by, WeightRule& rule) {
  const double muon = muon_factor(options, rule, by.fan_in);
  rule.lr_scale *= by.lr * muon;
  rule.weight_decay *= by.decay / muon;
  rule.eps *= by.eps;
}

void expect_every_pattern_to_match(const OptimizerOptions& options, const ParamTable& table) {
  for (size_t g = 0; g < options.groups.size(); ++g) {
    for (const std::string& pattern : options.groups[g].match) {
      if (matches_a_weight(pattern, table)) continue;
      const std::vector<std::string> names = names_of(table);
      fail(Kind::kConfig, str("optimizer.groups[", g, "].match has '", pattern, "', which no weight's name matches"),
           str("the weights are called like ", names.front(), " and ", names.at(names.size() / 2)));
    }
  }
}

}  // namespace

WeightRules weight_rules(const OptimizerOptions& options, const ParamTable& table) {
  WeightRules rules;
  expect_every_pattern_to_match(options, table);
  for (const Unit& unit : table.units) {
    std::vector<WeightRule>& of_unit = rules.emplace_back();
    for (const FlatParam& flat : flat_params(unit)) {
      const Param& param = *flat.param;
      WeightRule& rule = of_unit.emplace_back(rule_of_kind(options, unit, param));
      for (size_t g = 0; g < options.groups.size(); ++g) {
        if (!matches(options.groups[g], param.name)) continue;
        apply(options.groups[g], str("optimizer.groups[", g, "]"), unit, param, rule);
        break;
      }
      scale(options, param.update, rule);
    }
  }
  return rules;
}

bool matches_a_weight(const std::string& pattern, const ParamTable& table) {
  const std::vector<std::string> names = names_of(table);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return fits_pattern(pattern, name); });
}

}  // namespace tokamak

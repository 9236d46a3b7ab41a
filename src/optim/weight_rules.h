// The rule by which each weight is updated. The first of optimizer.groups with a pattern that matches the weight's name
// decides. The kind of weight decides what the group leaves out: AdamW updates the embedding, the head and vectors,
// vectors without decay, and optimizer.name updates other matrices. Factors of the weight itself (UpdateScale) multiply
// the result.
#pragma once

#include <string>
#include <vector>

#include "optim/options.h"
#include "tensor/param_table.h"

namespace tokamak {

struct WeightRule {
  std::string optimizer;  // "adamw", "muon"
  double lr_scale = 1;    // times the learning rate of the step; 0: frozen
  double weight_decay = 0;
  double eps = 0;  // AdamW's

  bool frozen() const { return lr_scale == 0; }
  bool operator==(const WeightRule&) const = default;
};

// The rules of each unit's weights, in the order of flat_params. Error(kConfig), naming the group, if a pattern matches
// no weight, or if Muon is to update a vector, the embedding or the head.
using WeightRules = std::vector<std::vector<WeightRule>>;
WeightRules weight_rules(const OptimizerOptions& options, const ParamTable& table);

bool matches_a_weight(const std::string& pattern, const ParamTable& table);  // a pattern of optimizer.groups

}  // namespace tokamak

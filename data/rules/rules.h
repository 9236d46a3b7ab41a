// Rules: limits of values. A rule has a name, "gopher_quality.words". A config changes its limits by that name, and a
// dropped document has it as its reason.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/rules/values.h"

namespace tokamak {

enum class RuleSet : uint8_t { kGopherQuality, kGopherRepetition, kFineWeb, kNemo };
inline const std::vector<std::string>& enum_names(RuleSet) {
  static const std::vector<std::string> names = {"gopher_quality", "gopher_repetition", "fineweb", "nemo"};
  return names;
}

// A value within its limits is kept.
struct ValueLimits {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();

  bool hold(double value) const { return value >= least && value <= most; }
};

struct Rule {
  Value value;
  ValueLimits limits;
};

// The published rules of a set, in the order in which datatrove applies them.
std::span<const Rule> published_rules(RuleSet set);

std::string rule_name(RuleSet set, Value value);  // "gopher_quality.words"

// The groups of values that a set needs.
std::span<const ValueGroup> groups_of(RuleSet set);

// The first rule that a text breaks. Its values must be measured.
std::optional<Value> broken_rule(std::span<const Rule> rules, const Values& values);

}  // namespace tokamak

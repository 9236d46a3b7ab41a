#include "data/rules/rules.h"

#include <array>

#include "base/fields.h"
#include "base/strings.h"

namespace tokamak {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr Rule at_least(Value value, double least) { return {value, {least, kInfinity}}; }
constexpr Rule at_most(Value value, double most) { return {value, {-kInfinity, most}}; }

// arXiv 2112.11446, appendix A.1, with datatrove's reading of it.
constexpr Rule kGopherQuality[] = {
    {Value::kWords, {50, 100'000}},     {Value::kWordLength, {3, 10}},     at_most(Value::kHashes, 0.1),
    at_most(Value::kEllipses, 0.1),     at_most(Value::kBulletLines, 0.9), at_most(Value::kEllipsisLines, 0.3),
    at_least(Value::kLetterWords, 0.8), at_least(Value::kStopWords, 2),
};

// The same, table A1.
constexpr Rule kGopherRepetition[] = {
    at_most(Value::kDuplicateParagraphs, 0.3), at_most(Value::kDuplicateParagraphChars, 0.2),
    at_most(Value::kDuplicateLines, 0.3),      at_most(Value::kDuplicateLineChars, 0.2),
    at_most(Value::kTop2Grams, 0.2),           at_most(Value::kTop3Grams, 0.18),
    at_most(Value::kTop4Grams, 0.16),          at_most(Value::kDuplicate5Grams, 0.15),
    at_most(Value::kDuplicate6Grams, 0.14),    at_most(Value::kDuplicate7Grams, 0.13),
    at_most(Value::kDuplicate8Grams, 0.12),    at_most(Value::kDuplicate9Grams, 0.11),
    at_most(Value::kDuplicate10Grams, 0.1),
};

// arXiv 2406.17557, section 3.5, and datatrove's filter.
constexpr Rule kFineWeb[] = {
    at_least(Value::kTerminalLines, 0.12),
    at_most(Value::kShortLines, 0.67),
    at_most(Value::kRepeatedLineChars, 0.01),
    at_most(Value::kLineEndsPerWord, 0.3),
};

// NeMo Curator's heuristics for English (config/heuristic_filter_en.yaml). Its duplicates are Gopher's here.
constexpr Rule kNemo[] = {
    at_most(Value::kOtherChars, 0.25),
    at_most(Value::kHashes, 0.1),
    at_most(Value::kEllipses, 0.1),
    at_most(Value::kDigits, 0.15),
    at_most(Value::kAddressChars, 0.2),
    at_most(Value::kWhiteSpace, 0.25),
    at_most(Value::kBrackets, 0.1),
    at_most(Value::kPolicyParagraphs, 0.4),
    at_most(Value::kDuplicateLines, 0.3),
    at_most(Value::kDuplicateLineChars, 0.2),
    at_most(Value::kDuplicateParagraphs, 0.3),
    at_most(Value::kDuplicateParagraphChars, 0.2),
    {Value::kWords, {50, 100'000}},
    at_most(Value::kUnendedLines, 0.85),
    at_least(Value::kLetterWords, 0.8),
    at_least(Value::kStopWords, 2),
    {Value::kWordLength, {3, 10}},
    at_most(Value::kLongestWord, 1000),
    at_most(Value::kBulletLines, 0.9),
    at_most(Value::kEllipsisLines, 0.3),
    at_most(Value::kTop2Grams, 0.2),
    at_most(Value::kTop3Grams, 0.18),
    at_most(Value::kTop4Grams, 0.16),
};

constexpr ValueGroup kOfQuality[] = {ValueGroup::kQuality};
constexpr ValueGroup kOfRepetition[] = {ValueGroup::kRepetition};
constexpr ValueGroup kOfFineWeb[] = {ValueGroup::kLines};
constexpr ValueGroup kOfNemo[] = {ValueGroup::kQuality, ValueGroup::kRepetition, ValueGroup::kChars};

struct SetOfRules {
  std::span<const Rule> rules;
  std::span<const ValueGroup> groups;
};

// In the order of RuleSet.
constexpr SetOfRules kSets[] = {
    {kGopherQuality, kOfQuality}, {kGopherRepetition, kOfRepetition}, {kFineWeb, kOfFineWeb}, {kNemo, kOfNemo}};

const SetOfRules& set_of(RuleSet set) { return kSets[static_cast<size_t>(set)]; }

}  // namespace

std::span<const Rule> published_rules(RuleSet set) { return set_of(set).rules; }

std::span<const ValueGroup> groups_of(RuleSet set) { return set_of(set).groups; }

std::string rule_name(RuleSet set, Value value) { return str(enum_name(set), ".", value_name(value)); }

std::optional<Value> broken_rule(std::span<const Rule> rules, const Values& values) {
  for (const Rule& rule : rules)
    if (!rule.limits.hold(values[rule.value])) return rule.value;
  return std::nullopt;
}

}  // namespace tokamak

// print_text_rules: for each line {"text": ...} of the standard input, a line of JSON with our words, verdicts and
// signature of the text. tests/interop/text_test.py compares them with datatrove's.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "data/dedup/minhash.h"
#include "data/rules/c4_lines.h"
#include "data/rules/rules.h"

using namespace tokamak;

namespace {

std::string verdict(RuleSet set, TextMeter& meter) {
  Values values;
  for (const ValueGroup group : groups_of(set)) meter.measure(group, values);
  const std::optional<Value> broken = broken_rule(published_rules(set), values);
  return broken ? std::string(value_name(*broken)) : "";
}

nlohmann::json cleaned(bool terminal_marks, const std::string& text) {
  C4Options options;
  options.terminal_marks = terminal_marks;
  std::string out;
  const C4Verdict verdict = C4Lines(options, WordRules::kEnglish).clean(text, out);
  return {c4_verdict_name(verdict), verdict == C4Verdict::kKept ? out : ""};
}

}  // namespace

int main() {
  TextMeter meter(WordRules::kEnglish, kEnglishStopWords);
  MinHasher hasher({}, WordRules::kEnglish);
  for (std::string line; std::getline(std::cin, line);) {
    const auto text = nlohmann::json::parse(line).at("text").get<std::string>();
    meter.begin(text);
    nlohmann::json out;
    out["words"] = meter.words();
    out["quality"] = verdict(RuleSet::kGopherQuality, meter);
    out["repetition"] = verdict(RuleSet::kGopherRepetition, meter);
    out["fineweb"] = verdict(RuleSet::kFineWeb, meter);
    out["c4"] = cleaned(true, text);
    out["c4_fineweb"] = cleaned(false, text);
    const std::span<const uint64_t> signature = hasher.signature(text);
    out["minhash"] = std::vector<uint64_t>(signature.begin(), signature.end());
    std::cout << out.dump() << "\n";
  }
}

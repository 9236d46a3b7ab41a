// The published rules judge as datatrove does, by values that are measured once.
#include "data/rules/rules.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "data/rules/c4_lines.h"
#include "data/rules/golden_texts.h"

using namespace tokamak;

namespace {

// datatrove's reasons, by the name of the value.
const std::map<std::string, std::string> kReasons = {{"gopher_short_doc", "words"},
                                                     {"gopher_long_doc", "words"},
                                                     {"gopher_below_avg_threshold", "word_length"},
                                                     {"gopher_above_avg_threshold", "word_length"},
                                                     {"gopher_too_many_hashes", "hashes"},
                                                     {"gopher_too_many_ellipsis", "ellipses"},
                                                     {"gopher_too_many_bullets", "bullet_lines"},
                                                     {"gopher_too_many_end_ellipsis", "ellipsis_lines"},
                                                     {"gopher_below_alpha_threshold", "letter_words"},
                                                     {"gopher_enough_stop_words", "stop_words"},
                                                     {"dup_para_frac", "duplicate_paragraphs"},
                                                     {"dup_para_char_frac", "duplicate_paragraph_chars"},
                                                     {"dup_line_frac", "duplicate_lines"},
                                                     {"dup_line_char_frac", "duplicate_line_chars"},
                                                     {"top_2_gram", "top_2_grams"},
                                                     {"top_3_gram", "top_3_grams"},
                                                     {"top_4_gram", "top_4_grams"},
                                                     {"duplicated_5_n_grams", "duplicate_5_grams"},
                                                     {"duplicated_6_n_grams", "duplicate_6_grams"},
                                                     {"duplicated_7_n_grams", "duplicate_7_grams"},
                                                     {"duplicated_8_n_grams", "duplicate_8_grams"},
                                                     {"duplicated_9_n_grams", "duplicate_9_grams"},
                                                     {"duplicated_10_n_grams", "duplicate_10_grams"},
                                                     {"line_punct_ratio", "terminal_lines"},
                                                     {"short_line_ratio", "short_lines"},
                                                     {"char_dup_ratio", "repeated_line_chars"},
                                                     {"list_ratio", "line_ends_per_word"},
                                                     {"too_few_sentences", "few_sentences"},
                                                     {"lorem_ipsum", "lorem_ipsum"},
                                                     {"curly_bracket", "curly_bracket"},
                                                     {"", ""}};

Values measured(TextMeter& meter, std::string_view text) {
  Values values;
  meter.begin(text);
  for (const ValueGroup group : {ValueGroup::kQuality, ValueGroup::kRepetition, ValueGroup::kLines, ValueGroup::kChars})
    meter.measure(group, values);
  return values;
}

Values measured(const std::string& text) {
  TextMeter meter(WordRules::kEnglish, kEnglishStopWords);
  return measured(meter, text);
}

std::string verdict(RuleSet set, const Values& values) {
  const std::optional<Value> broken = broken_rule(published_rules(set), values);
  return broken ? std::string(value_name(*broken)) : "";
}

}  // namespace

TEST_CASE("Gopher's and FineWeb's rules drop what datatrove drops, for the same reason") {
  TextMeter meter(WordRules::kEnglish, kEnglishStopWords);
  std::map<std::string, int64_t> seen;
  for_each_golden_text([&](const JsonValue& row, const std::string& text) {
    INFO(text);
    const Values values = measured(meter, text);
    const auto compare = [&](RuleSet set, const std::string& member) {
      const std::string expected = kReasons.at(row[member].text());
      CHECK(verdict(set, values) == expected);
      ++seen[expected];
    };
    compare(RuleSet::kGopherQuality, "quality");
    compare(RuleSet::kGopherRepetition, "repetition");
    compare(RuleSet::kFineWeb, "fineweb");
  });
  CHECK(seen.size() > 10);  // the texts break rules of every kind
}

TEST_CASE("C4's cleaning keeps the lines that datatrove keeps") {
  for_each_golden_text([&](const JsonValue& row, const std::string& text) {
    INFO(text);
    const auto compare = [&](const std::string& member, bool terminal_marks) {
      C4Options options;
      options.terminal_marks = terminal_marks;
      std::string cleaned;
      const C4Verdict verdict = C4Lines(options, WordRules::kEnglish).clean(text, cleaned);
      const std::string reason = kReasons.at(row[member].items()[0].text());
      CHECK(c4_verdict_name(verdict) == (reason.empty() ? "kept" : reason));
      if (verdict == C4Verdict::kKept) CHECK(cleaned == row[member].items()[1].text());
    };
    compare("c4", true);
    compare("c4_fineweb", false);
  });
}

TEST_CASE("values count characters and parts as their names say") {
  const Values values = measured("One two three.\nOne two three.\n\n- four (five) 66\n");
  CHECK(values[Value::kWords] == 9);                         // without "." twice, "-", "(" and ")"
  CHECK(values[Value::kDuplicateLines] == Approx(1.0 / 4));  // the text ends in an empty line
  CHECK(values[Value::kDuplicateLineChars] == Approx(14.0 / 48));
  CHECK(values[Value::kDuplicateParagraphs] == 0);
  CHECK(values[Value::kBulletLines] == Approx(1.0 / 4));
  CHECK(values[Value::kTerminalLines] == Approx(2.0 / 3));
  CHECK(values[Value::kDigits] == Approx(2.0 / 48));
  CHECK(values[Value::kBrackets] == Approx(2.0 / 48));
  CHECK(values[Value::kLongestWord] == 5);
}

TEST_CASE("a repeated n-gram counts once for each time after the first") {
  std::string text;
  for (int i = 0; i < 3; ++i) text += "alpha beta gamma delta epsilon ";
  const Values values = measured(text);
  CHECK(values[Value::kDuplicate5Grams] == Approx(2.0 * 26 / 93));
  CHECK(values[Value::kTop2Grams] == Approx(3.0 * 10 / 93));  // the first of four that occur three times
  CHECK(values[Value::kDuplicate10Grams] == Approx(1.0 * 52 / 93));
}

TEST_CASE("NeMo's values name policies and addresses") {
  CHECK(measured("We use cookies.\n\nThe rest is text.")[Value::kPolicyParagraphs] == Approx(0.5));
  CHECK(measured("Some Lorem Ipsum here")[Value::kPolicyParagraphs] == 1);
  CHECK(measured("see www.example.com now")[Value::kAddressChars] == Approx(15.0 / 23));
  CHECK(verdict(RuleSet::kNemo, measured("12345 67890 12345 67890")) == "digits");
}

TEST_CASE("every value has a name of its own, and what was not measured is missing") {
  for (size_t i = 0; i < kValues; ++i) CHECK(value_of_name(value_name(static_cast<Value>(i))) == static_cast<Value>(i));
  CHECK_FALSE(value_of_name("wrods").has_value());
  Values values;
  CHECK(std::isnan(values[Value::kWords]));
  CHECK(rule_name(RuleSet::kNemo, Value::kDigits) == "nemo.digits");
  for (const RuleSet set : {RuleSet::kGopherQuality, RuleSet::kGopherRepetition, RuleSet::kFineWeb, RuleSet::kNemo}) {
    TextMeter meter(WordRules::kEnglish, kEnglishStopWords);
    meter.begin("Some words.");
    for (const ValueGroup group : groups_of(set)) meter.measure(group, values);
    for (const Rule& rule : published_rules(set)) CHECK_FALSE(std::isnan(values[rule.value]));
  }
}

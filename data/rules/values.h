// The values of a text by which rules judge it. A rule compares one value with limits (rules.h), so a text is measured
// once and judged as often as wanted. Lengths are in characters (code points), as in the Python tools.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "data/rules/repetition.h"
#include "data/rules/words.h"

namespace tokamak {

enum class Value : uint8_t {
  // Gopher's quality rules (arXiv 2112.11446, appendix A.1)
  kWords,          // without those of punctuation alone
  kWordLength,     // mean, of these words
  kHashes,         // "#" per word
  kEllipses,       // "..." and "…" per word
  kBulletLines,    // share of lines that begin with "•" or "-"
  kEllipsisLines,  // share of lines that end with an ellipsis
  kLetterWords,    // share of words with a letter
  kStopWords,      // different stop words that occur
  // Gopher's repetition rules (table A1): shares of the parts, and of the text's characters
  kDuplicateParagraphs,
  kDuplicateParagraphChars,
  kDuplicateLines,
  kDuplicateLineChars,
  kTop2Grams,
  kTop3Grams,
  kTop4Grams,
  kDuplicate5Grams,
  kDuplicate6Grams,
  kDuplicate7Grams,
  kDuplicate8Grams,
  kDuplicate9Grams,
  kDuplicate10Grams,
  // FineWeb's own rules (arXiv 2406.17557), of lines that are not blank
  kTerminalLines,      // share that ends with a mark that ends a sentence
  kShortLines,         // share of at most 30 characters
  kRepeatedLineChars,  // characters of duplicate lines, as a share of all but line ends
  kLineEndsPerWord,
  // NeMo Curator's heuristics: shares of the text's characters, except where said
  kOtherChars,  // none of letters, digits, line ends and . , ! ?
  kDigits,
  kWhiteSpace,
  kBrackets,
  kAddressChars,      // of words that are web addresses
  kUnendedLines,      // share of lines without a mark at their end
  kPolicyParagraphs,  // share of paragraphs with a phrase like "privacy policy"; 1: the text has "lorem ipsum"
  kLongestWord,       // characters
  kCount
};
constexpr size_t kValues = static_cast<size_t>(Value::kCount);

std::string_view value_name(Value value);  // "duplicate_lines"
std::optional<Value> value_of_name(std::string_view name);

// Values by name. Those that were not measured are NaN.
class Values {
 public:
  Values() { values_.fill(kMissing); }
  double& operator[](Value value) { return values_[static_cast<size_t>(value)]; }
  double operator[](Value value) const { return values_[static_cast<size_t>(value)]; }

 private:
  static constexpr double kMissing = __builtin_nan("");
  std::array<double, kValues> values_;
};

// Groups of values that are measured together.
enum class ValueGroup { kQuality, kRepetition, kLines, kChars };
ValueGroup group_of(Value value);

// Measures texts, one at a time; each thread has its own.
class TextMeter {
 public:
  TextMeter(WordRules rules, const std::vector<std::string>& stop_words);

  // The text of the next measurements: valid UTF-8, not empty, in memory until the next begin().
  void begin(std::string_view text);
  void measure(ValueGroup group, Values& values);
  const std::vector<std::string_view>& words();  // of the text; split at the first call

 private:
  void measure_quality(Values& values);
  void measure_repetition(Values& values);
  void measure_lines(Values& values);
  void measure_chars(Values& values);

  WordSplitter splitter_;
  std::vector<std::string> stop_words_;
  size_t longest_stop_word_ = 0;           // bytes
  std::bitset<256> begins_stop_word_;      // by byte
  std::vector<std::string_view> missing_;  // stop words that the text has not had yet
  RepetitionMeter repetition_;
  std::string_view text_;
  int64_t chars_ = 0;  // of text_
  bool is_split_ = false;
  std::vector<std::string_view> words_;
  std::vector<int32_t> word_chars_;
  std::vector<uint64_t> word_hashes_;
};

// Gopher's.
extern const std::vector<std::string> kEnglishStopWords;

}  // namespace tokamak

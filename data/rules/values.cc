#include "data/rules/values.h"

#include <algorithm>

#include "base/utf8.h"
#include "data/rules/c4_lines.h"
#include "data/rules/terminal_marks.h"
#include "data/rules/text_lines.h"
#include "data/rules/web_address.h"
#include "data/rules/word_hash.h"

namespace tokamak {

namespace {

constexpr int64_t kShortLine = 30;  // characters
constexpr std::string_view kEllipsis = "…";

constexpr std::string_view kNames[kValues] = {"words",
                                              "word_length",
                                              "hashes",
                                              "ellipses",
                                              "bullet_lines",
                                              "ellipsis_lines",
                                              "letter_words",
                                              "stop_words",
                                              "duplicate_paragraphs",
                                              "duplicate_paragraph_chars",
                                              "duplicate_lines",
                                              "duplicate_line_chars",
                                              "top_2_grams",
                                              "top_3_grams",
                                              "top_4_grams",
                                              "duplicate_5_grams",
                                              "duplicate_6_grams",
                                              "duplicate_7_grams",
                                              "duplicate_8_grams",
                                              "duplicate_9_grams",
                                              "duplicate_10_grams",
                                              "terminal_lines",
                                              "short_lines",
                                              "repeated_line_chars",
                                              "line_ends_per_word",
                                              "other_chars",
                                              "digits",
                                              "white_space",
                                              "brackets",
                                              "address_chars",
                                              "unended_lines",
                                              "policy_paragraphs",
                                              "longest_word"};

double ratio(int64_t part, int64_t whole) { return whole > 0 ? double(part) / double(whole) : 0; }

// Occurrences that do not overlap.
int64_t count_of(std::string_view text, std::string_view what) {
  int64_t count = 0;
  for (size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + what.size())) ++count;
  return count;
}

char32_t last_char(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return decode_valid_utf8(text.data() + at).code;
}

struct WordShape {
  bool has_letter = false, has_more_than_symbols = false;
};

WordShape shape_of(std::string_view word) {
  const CharMap& classes = word_classes();
  WordShape shape;
  for (size_t at = 0; at < word.size() && !(shape.has_letter && shape.has_more_than_symbols);) {
    const Utf8Char c = decode_valid_utf8(word.data() + at);
    shape.has_letter |= is_letter(classes[c.code]);
    shape.has_more_than_symbols |= (classes[c.code] & kSymbolChar) == 0;
    at += static_cast<size_t>(c.length);
  }
  return shape;
}

// Kinds of characters of ASCII, for NeMo's shares.
enum AsciiKind : uint8_t { kUsual = 1, kDigit = 2, kSpace = 4, kBracket = 8 };
constexpr std::array<uint8_t, 128> ascii_kinds() {
  std::array<uint8_t, 128> kinds{};
  for (size_t i = 0; i < kinds.size(); ++i) {
    const bool digit = i >= '0' && i <= '9', letter = (i >= 'a' && i <= 'z') || (i >= 'A' && i <= 'Z');
    const bool space = i == ' ' || (i >= 9 && i <= 13) || (i >= 0x1C && i <= 0x1F);
    const bool mark = i == '\n' || i == '.' || i == ',' || i == '!' || i == '?';
    const bool bracket = i == '(' || i == ')' || i == '[' || i == ']' || i == '{' || i == '}';
    kinds[i] = static_cast<uint8_t>((digit || letter || mark ? kUsual : 0) | (digit ? kDigit : 0) |
                                    (space ? kSpace : 0) | (bracket ? kBracket : 0));
  }
  return kinds;
}
constexpr std::array<uint8_t, 128> kAsciiKinds = ascii_kinds();

}  // namespace

const std::vector<std::string> kEnglishStopWords = {"the", "be", "to", "of", "and", "that", "have", "with"};

std::string_view value_name(Value value) { return kNames[static_cast<size_t>(value)]; }

std::optional<Value> value_of_name(std::string_view name) {
  const auto found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) return std::nullopt;
  return static_cast<Value>(found - std::begin(kNames));
}

TextMeter::TextMeter(WordRules rules, const std::vector<std::string>& stop_words)
    : splitter_(rules), stop_words_(stop_words) {
  for (const std::string& word : stop_words) longest_stop_word_ = std::max(longest_stop_word_, word.size());
}

void TextMeter::begin(std::string_view text) {
  text_ = text;
  chars_ = count_chars(text);
  is_split_ = false;
}

const std::vector<std::string_view>& TextMeter::words() {
  if (is_split_) return words_;
  is_split_ = true;
  splitter_.split(text_, words_);
  word_chars_.clear();
  for (const std::string_view word : words_) word_chars_.push_back(static_cast<int32_t>(count_chars(word)));
  return words_;
}

void TextMeter::measure(ValueGroup group, Values& values) {
  switch (group) {
    case ValueGroup::kQuality:
      return measure_quality(values);
    case ValueGroup::kRepetition:
      return measure_repetition(values);
    case ValueGroup::kLines:
      return measure_lines(values);
    case ValueGroup::kChars:
      return measure_chars(values);
  }
}

void TextMeter::measure_quality(Values& values) {
  int64_t with_letter = 0, counted = 0, chars = 0;
  std::vector<bool> found(stop_words_.size());
  words();
  for (size_t w = 0; w < words_.size(); ++w) {
    const std::string_view word = words_[w];
    const WordShape shape = shape_of(word);
    with_letter += shape.has_letter ? 1 : 0;
    if (shape.has_more_than_symbols) ++counted, chars += word_chars_[w];
    if (word.size() > longest_stop_word_) continue;
    for (size_t i = 0; i < found.size(); ++i)
      if (word == stop_words_[i]) found[i] = true;
  }
  int64_t lines = 0, bullets = 0, ellipses = 0;
  for_each_line(text_, [&](std::string_view line) {
    const std::string_view left = strip_left(line), right = strip_right(line);
    ++lines;
    bullets += left.starts_with("•") || left.starts_with('-') ? 1 : 0;
    ellipses += right.ends_with("...") || right.ends_with(kEllipsis) ? 1 : 0;
  });
  const int64_t all = std::ssize(words_);
  values[Value::kWords] = double(counted);
  values[Value::kWordLength] = ratio(chars, counted);
  values[Value::kHashes] = ratio(std::count(text_.begin(), text_.end(), '#'), all);
  values[Value::kEllipses] = ratio(count_of(text_, "...") + count_of(text_, kEllipsis), all);
  values[Value::kBulletLines] = ratio(bullets, lines);
  values[Value::kEllipsisLines] = ratio(ellipses, lines);
  values[Value::kLetterWords] = ratio(with_letter, all);
  values[Value::kStopWords] = double(std::count(found.begin(), found.end(), true));
}

void TextMeter::measure_repetition(Values& values) {
  const auto put = [&](Value fraction, Value chars) {
    values[fraction] = repetition_.parts().fraction();
    values[chars] = ratio(repetition_.parts().chars, chars_);
  };
  const auto add = [&](std::string_view part) { repetition_.add_part(part); };
  repetition_.begin_parts();
  for_each_part(strip(text_), 2, add);
  put(Value::kDuplicateParagraphs, Value::kDuplicateParagraphChars);
  repetition_.begin_parts();
  for_each_part(text_, 1, add);
  put(Value::kDuplicateLines, Value::kDuplicateLineChars);

  words();  // which fills word_chars_ too
  const WordHasher hash(text_);
  word_hashes_.clear();
  for (const std::string_view word : words_) word_hashes_.push_back(hash(word));
  const NgramRepetition ngrams = repetition_.ngrams(word_hashes_, word_chars_);
  const auto share = [&](Value first, size_t i, int64_t chars) {
    values[static_cast<Value>(static_cast<size_t>(first) + i)] = ratio(chars, chars_);
  };
  for (size_t i = 0; i < ngrams.top_chars.size(); ++i) share(Value::kTop2Grams, i, ngrams.top_chars[i]);
  for (size_t i = 0; i < ngrams.duplicate_chars.size(); ++i)
    share(Value::kDuplicate5Grams, i, ngrams.duplicate_chars[i]);
}

void TextMeter::measure_lines(Values& values) {
  int64_t lines = 0, terminal = 0, brief = 0;
  repetition_.begin_parts();
  for_each_part(text_, 1, [&](std::string_view line) {
    if (strip_left(line).empty()) return;
    ++lines;
    terminal += is_terminal_mark(last_char(line)) ? 1 : 0;
    brief += count_chars(line) <= kShortLine ? 1 : 0;
    repetition_.add_part(line);
  });
  const int64_t line_ends = std::count(text_.begin(), text_.end(), '\n');
  values[Value::kTerminalLines] = ratio(terminal, lines);
  values[Value::kShortLines] = ratio(brief, lines);
  values[Value::kRepeatedLineChars] = ratio(repetition_.parts().chars, chars_ - line_ends);
  values[Value::kLineEndsPerWord] = ratio(line_ends, std::ssize(words()));
}

void TextMeter::measure_chars(Values& values) {
  const CharMap& classes = word_classes();
  int64_t usual = 0, digits = 0, spaces = 0, brackets = 0;
  const auto add = [&](unsigned kinds) {
    usual += kinds & kUsual;
    digits += kinds >> 1 & 1;
    spaces += kinds >> 2 & 1;
    brackets += kinds >> 3 & 1;
  };
  for (size_t at = 0; at < text_.size();) {
    const Utf8Char c = decode_valid_utf8(text_.data() + at);
    const unsigned kinds = classes[c.code];
    if (c.code < 0x80)
      add(kAsciiKinds[c.code]);
    else
      add((is_letter(kinds) ? unsigned{kUsual} : 0U) | ((kinds & kSpaceChar) != 0 ? unsigned{kSpace} : 0U));
    at += static_cast<size_t>(c.length);
  }
  int64_t address_chars = 0, longest = 0;
  words();
  for (size_t w = 0; w < words_.size(); ++w) {
    longest = std::max<int64_t>(longest, word_chars_[w]);
    if (word_chars_[w] > 3 && is_web_address(words_[w])) address_chars += word_chars_[w];
  }
  int64_t lines = 0, unended = 0;
  for_each_line(text_, [&](std::string_view line) {
    const std::string_view kept = strip_right(line);
    if (kept.empty()) return;
    ++lines;
    unended += is_terminal_mark(last_char(kept)) || kept.ends_with('"') ? 0 : 1;
  });
  int64_t paragraphs = 0, policies = 0;
  for_each_part(text_, 2, [&](std::string_view paragraph) {
    ++paragraphs;
    policies += has_policy_phrase(paragraph) ? 1 : 0;
  });
  values[Value::kPolicyParagraphs] = contains_word(text_, "lorem ipsum") ? 1 : ratio(policies, paragraphs);
  values[Value::kOtherChars] = ratio(chars_ - usual, chars_);
  values[Value::kDigits] = ratio(digits, chars_);
  values[Value::kWhiteSpace] = ratio(spaces, chars_);
  values[Value::kBrackets] = ratio(brackets, chars_);
  values[Value::kAddressChars] = ratio(address_chars, chars_);
  values[Value::kUnendedLines] = ratio(unended, lines);
  values[Value::kLongestWord] = double(longest);
}

}  // namespace tokamak

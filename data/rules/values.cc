#include "data/rules/values.h"

#include <algorithm>
#include <numeric>

#include "base/utf8.h"
#include "data/rules/bytes.h"
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

WordShape shape_of(std::string_view word, const CharMap& classes) {
  WordShape shape;
  for (size_t at = 0; at < word.size() && !(shape.has_letter && shape.has_more_than_symbols);) {
    const Utf8Char c = decode_valid_utf8(word.data() + at);
    shape.has_letter |= is_letter(classes[c.code]);
    shape.has_more_than_symbols |= (classes[c.code] & kSymbolChar) == 0;
    at += static_cast<size_t>(c.length);
  }
  return shape;
}

// The characters that NeMo's shares are of.
struct CharCounts {
  int64_t usual = 0, digits = 0, spaces = 0, brackets = 0;
};

CharCounts count_ascii(std::string_view text) {
  std::array<int64_t, 256> of_byte{};
  for (const char c : text) ++of_byte[static_cast<unsigned char>(c)];
  const auto any_of = [&](std::string_view chars) {
    int64_t count = 0;
    for (const char c : chars) count += of_byte[static_cast<unsigned char>(c)];
    return count;
  };
  const auto in_range = [&](size_t first, size_t last) {
    return std::accumulate(of_byte.begin() + first, of_byte.begin() + last + 1, int64_t{0});
  };
  const int64_t digits = in_range('0', '9');
  return {.usual = digits + in_range('a', 'z') + in_range('A', 'Z') + any_of("\n.,!?"),
          .digits = digits,
          .spaces = any_of(" ") + in_range(0x09, 0x0D) + in_range(0x1C, 0x1F),
          .brackets = any_of("()[]{}")};
}

CharCounts count_kinds(std::string_view text) {
  CharCounts counts = count_ascii(text);
  const CharMap& classes = word_classes();
  for (size_t at = 0; (at = find_non_ascii(text, at)) < text.size();) {
    const Utf8Char c = decode_valid_utf8(text.data() + at);
    counts.usual += is_letter(classes[c.code]) ? 1 : 0;
    counts.spaces += (classes[c.code] & kSpaceChar) != 0 ? 1 : 0;
    at += static_cast<size_t>(c.length);
  }
  return counts;
}

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
  for (const std::string& word : stop_words) {
    longest_stop_word_ = std::max(longest_stop_word_, word.size());
    if (!word.empty()) begins_stop_word_.set(static_cast<unsigned char>(word[0]));
  }
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
  FoundInRanges other_than_ascii([&](size_t at) { return find_non_ascii(text_, at); });
  for (const std::string_view word : words_) {
    const auto begin = static_cast<size_t>(word.data() - text_.data());
    const bool ascii = !other_than_ascii.within(begin, begin + word.size());
    word_chars_.push_back(static_cast<int32_t>(ascii ? std::ssize(word) : count_chars(word)));
  }
  return words_;
}

// In the order of Value.
ValueGroup group_of(Value value) {
  if (value <= Value::kStopWords) return ValueGroup::kQuality;
  if (value <= Value::kDuplicate10Grams) return ValueGroup::kRepetition;
  return value <= Value::kLineEndsPerWord ? ValueGroup::kLines : ValueGroup::kChars;
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
  missing_.assign(stop_words_.begin(), stop_words_.end());
  const CharMap& classes = word_classes();
  words();
  for (size_t w = 0; w < words_.size(); ++w) {
    const std::string_view word = words_[w];
    const WordShape shape = shape_of(word, classes);
    with_letter += shape.has_letter ? 1 : 0;
    if (shape.has_more_than_symbols) ++counted, chars += word_chars_[w];
    if (begins_stop_word_[static_cast<unsigned char>(word[0])] && word.size() <= longest_stop_word_)
      std::erase(missing_, word);
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
  values[Value::kHashes] = ratio(count_bytes(text_, [](char c) { return c == '#'; }), all);
  values[Value::kEllipses] = ratio(count_of(text_, "...") + count_of(text_, kEllipsis), all);
  values[Value::kBulletLines] = ratio(bullets, lines);
  values[Value::kEllipsisLines] = ratio(ellipses, lines);
  values[Value::kLetterWords] = ratio(with_letter, all);
  values[Value::kStopWords] = double(stop_words_.size() - missing_.size());
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
  const int64_t line_ends = count_bytes(text_, [](char c) { return c == '\n'; });
  values[Value::kTerminalLines] = ratio(terminal, lines);
  values[Value::kShortLines] = ratio(brief, lines);
  values[Value::kRepeatedLineChars] = ratio(repetition_.parts().chars, chars_ - line_ends);
  values[Value::kLineEndsPerWord] = ratio(line_ends, std::ssize(words()));
}

void TextMeter::measure_chars(Values& values) {
  const CharCounts counts = count_kinds(text_);
  int64_t address_chars = 0, longest = 0;
  words();
  FoundInRanges dots([&](size_t at) { return std::min(text_.find('.', at), text_.size()); });
  for (size_t w = 0; w < words_.size(); ++w) {
    longest = std::max<int64_t>(longest, word_chars_[w]);
    const auto begin = static_cast<size_t>(words_[w].data() - text_.data());
    if (!dots.within(begin, begin + words_[w].size())) continue;
    if (word_chars_[w] > 3 && is_web_address(words_[w])) address_chars += word_chars_[w];
  }
  int64_t lines = 0, unended = 0;
  for_each_line(text_, [&](std::string_view line) {
    const std::string_view kept = strip_right(line);
    if (kept.empty()) return;
    ++lines;
    unended += is_terminal_mark(last_char(kept)) || kept.ends_with('"') ? 0 : 1;
  });
  const bool has_policies = has_policy_phrase(text_);  // few texts have, so their paragraphs are only counted
  int64_t paragraphs = 0, policies = 0;
  for_each_part(text_, 2, [&](std::string_view paragraph) {
    ++paragraphs;
    policies += has_policies && has_policy_phrase(paragraph) ? 1 : 0;
  });
  values[Value::kPolicyParagraphs] = contains_word(text_, "lorem ipsum") ? 1 : ratio(policies, paragraphs);
  values[Value::kOtherChars] = ratio(chars_ - counts.usual, chars_);
  values[Value::kDigits] = ratio(counts.digits, chars_);
  values[Value::kWhiteSpace] = ratio(counts.spaces, chars_);
  values[Value::kBrackets] = ratio(counts.brackets, chars_);
  values[Value::kAddressChars] = ratio(address_chars, chars_);
  values[Value::kUnendedLines] = ratio(unended, lines);
  values[Value::kLongestWord] = double(longest);
}

}  // namespace tokamak

#include "tokenizer/scan/pattern_reader.h"

#include "base/error.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "tokenizer/scan/unicode_tables.h"

namespace tokamak {

namespace {

bool is_ascii_letter(uint32_t c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; }

}  // namespace

CharSet folded(const CharSet& set) {
  CharSet result = set;
  for (uint32_t c = 'A'; c <= 'Z'; ++c) {
    CharSet same = CharSet::one(c) | CharSet::one(c + 32);
    if (c == 'K') same = same | CharSet::one(0x212A);
    if (c == 'S') same = same | CharSet::one(0x17F);
    if (!(set & same).empty()) result = result | same;
  }
  return result;
}

bool folds_simply(const CharSet& set) {
  CharSet uncased = CharSet::range(0, 0x7F) | white_space_set();
  for (const char* name : {"P", "Sm", "Sc", "Nd"}) uncased = uncased | *property_set(name);
  return (set & uncased.complement()).empty();
}

bool PatternReader::take(std::string_view text) {
  if (!sees(text)) return false;
  at_ += text.size();
  return true;
}

uint32_t PatternReader::take_char() {
  if (at_end()) refuse("an unfinished construct");
  const Utf8Char c = decode_valid_utf8(pattern_.data() + at_);
  at_ += static_cast<size_t>(c.length);
  return c.code;
}

void PatternReader::refuse(std::string_view construct) const {
  fail(Kind::kData, str("pattern '", printable(pattern_, 200), "' has ", construct, " before byte ", at_,
                        ", which cannot be matched exactly as Hugging Face tokenizers matches it"));
}

std::optional<CharSet> PatternReader::escaped_set() {
  const size_t start = at_;
  take("\\");
  const auto property = [](std::string_view name) { return *property_set(name); };
  if (take("s")) return white_space_set();
  if (take("S")) return white_space_set().complement();
  if (take("d")) return property("Nd");
  if (take("D")) return property("Nd").complement();
  if (take("w")) return property("word");
  if (take("W")) return property("word").complement();
  bool negated = sees("P");
  if (!take("p{") && !take("P{")) {
    at_ = start;
    return std::nullopt;
  }
  if (take("^")) negated = !negated;
  const size_t end = pattern_.find('}', at_);
  if (end == std::string_view::npos) refuse("an unclosed \\p{");
  const std::string_view name = pattern_.substr(at_, end - at_);
  const std::optional<CharSet> found = property_set(name);
  if (!found) refuse(str("the property ", printable(name)));
  at_ = end + 1;
  return negated ? found->complement() : *found;
}

uint32_t PatternReader::escaped_char() {
  take("\\");
  if (at_end()) refuse("a \\ at its end");
  const size_t start = at_;
  const uint32_t c = take_char();
  if (c == 'x' && take("{")) return hex_until("}", 8);
  if (c == 'x') {
    const uint32_t code = hex_digits(2);
    if (code >= 0x80) refuse("a byte of \\x80 or more");
    return code;
  }
  if (c == 'u') return valid(hex_digits(4));
  constexpr std::string_view kNames = "tnrfvae";
  constexpr std::string_view kValues = "\t\n\r\f\v\a\x1b";
  if (const size_t found = c < 0x80 ? kNames.find(static_cast<char>(c)) : std::string_view::npos;
      found != std::string_view::npos)
    return static_cast<unsigned char>(kValues[found]);
  const bool plain = c >= 0x80 || (c > 0x20 && c < 0x7F && !is_ascii_letter(c) && !(c >= '0' && c <= '9')) || c == ' ';
  if (!plain) refuse(str("the escape \\", printable(pattern_.substr(start, at_ - start))));
  return c;
}

uint32_t PatternReader::valid(uint32_t code) const {
  if (code >= kCodePoints || (code >= 0xD800 && code < 0xE000)) refuse("a number that is no character");
  return code;
}

uint32_t PatternReader::hex_digits(int count) {
  uint32_t code = 0;
  for (int i = 0; i < count; ++i) {
    const uint32_t c = take_char();
    const uint32_t digit = c >= '0' && c <= '9'                 ? c - '0'
                           : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                                : 16;
    if (digit > 15) refuse("too few hexadecimal digits");
    code = code << 4 | digit;
  }
  return code;
}

uint32_t PatternReader::hex_until(std::string_view end, size_t most) {
  const size_t found = pattern_.find(end, at_);
  if (found == std::string_view::npos || found == at_ || found - at_ > most) refuse("a damaged \\x{");
  const uint32_t code = hex_digits(static_cast<int>(found - at_));
  take(end);
  return valid(code);
}

CharSet PatternReader::bracket(bool ignore_case, int depth) {
  if (depth > kMaxPatternDepth) refuse("classes more than 100 deep");
  const bool negated = take("^");
  std::optional<CharSet> both;  // of what stands before the last &&
  CharSet current;
  bool any = false;
  if (sees("]")) refuse("a ] at the start of a class");
  while (!take("]")) {
    if (at_end()) refuse("an unclosed [");
    if (sees("[:")) refuse("a POSIX class");
    if (take("&&")) {
      if (!any || ignore_case) refuse("this use of &&");
      both = both ? *both & current : current;
      current = CharSet();
      any = false;
      continue;
    }
    any = true;
    if (take("[")) {
      current = current | bracket(ignore_case, depth + 1);
      continue;
    }
    current = current | (ignore_case ? class_item_folded() : class_item());
  }
  if (both && !any) refuse("this use of &&");
  if (both) current = *both & current;
  return negated ? current.complement() : current;
}

CharSet PatternReader::class_item_folded() {
  const CharSet item = class_item();
  if (!folds_simply(item)) refuse("(?i) with this class");
  return folded(item);
}

// A property, one character, or a range of characters.
CharSet PatternReader::class_item() {
  const bool dash = sees("-");
  if (sees("\\"))
    if (const std::optional<CharSet> set = escaped_set()) {
      if (sees("-") && !sees("-]")) refuse("a - after a property in a class");
      return *set;
    }
  const bool first_or_last = pattern_[at_ - 1] == '[' || pattern_[at_ - 1] == '^' || sees("-]");
  if (dash && !first_or_last) refuse("a - between ranges of a class");
  const uint32_t first = sees("\\") ? escaped_char() : take_char();
  if (!sees("-") || sees("-]")) return CharSet::one(first);
  take("-");
  if (dash || sees("[") || sees("-") || sees("&&")) refuse("a range of a class with an unclear end");
  if (sees("\\") && escaped_set()) refuse("a range of a class that ends in a property");
  const uint32_t last = sees("\\") ? escaped_char() : take_char();
  if (last < first) refuse("an empty range of a class");
  return CharSet::range(first, last);
}

}  // namespace tokamak

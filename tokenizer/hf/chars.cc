#include "tokenizer/hf/chars.h"

#include "base/error.h"
#include "base/utf8.h"

namespace tokamak {

namespace {

CharSet category(std::string_view name) {
  const std::optional<CharSet> set = property_set(name);
  TOKAMAK_CHECK(set.has_value(), "there is no category ", name);
  return *set;
}

}  // namespace

// Alphabetic is L, Nl and Other_Alphabetic, whose members are marks or the circled and squared letters named here.
CharSet word_set() {
  return category("L") | category("M") | category("Nd") | category("Nl") | category("Pc") |
         CharSet::range(0x200C, 0x200D) | CharSet::range(0x24B6, 0x24E9) | CharSet::range(0x1F130, 0x1F149) |
         CharSet::range(0x1F150, 0x1F169) | CharSet::range(0x1F170, 0x1F189);
}

CharSet punctuation_set() {
  return category("P") | CharSet::range('!', '/') | CharSet::range(':', '@') | CharSet::range('[', '`') |
         CharSet::range('{', '~');
}

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

std::string_view last_character(std::string_view text) {
  size_t at = text.size() - 1;
  while ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return text.substr(at);
}

size_t white_space_at_end(std::string_view text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view last = last_character(rest);
    if (!is_white_space(decode_valid_utf8(last.data()).code)) break;
    rest.remove_suffix(last.size());
  }
  return text.size() - rest.size();
}

size_t white_space_at_start(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const Utf8Char c = decode_valid_utf8(text.data() + at);
    if (!is_white_space(c.code)) break;
    at += static_cast<size_t>(c.length);
  }
  return at;
}

}  // namespace tokamak

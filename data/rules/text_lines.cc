#include "data/rules/text_lines.h"

#include "base/utf8.h"
#include "data/rules/bytes.h"
#include "data/rules/word_classes.h"

namespace tokamak {

namespace {

bool is_space(char32_t code) { return (word_classes()[code] & kSpaceChar) != 0; }

// The bytes of the line end that begins at `at`; 0: there is none.
size_t line_end_size(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(at);
  if (first == '\r') return byte(at + 1) == '\n' ? 2 : 1;
  if ((first >= 0x0A && first <= 0x0C) || (first >= 0x1C && first <= 0x1E)) return 1;
  if (first == 0xC2) return byte(at + 1) == 0x85 ? 2 : 0;
  if (first == 0xE2 && byte(at + 1) == 0x80) return byte(at + 2) == 0xA8 || byte(at + 2) == 0xA9 ? 3 : 0;
  return 0;
}

}  // namespace

std::string_view strip_left(std::string_view text) {
  while (!text.empty()) {
    const Utf8Char c = decode_valid_utf8(text.data());
    if (!is_space(c.code)) break;
    text.remove_prefix(static_cast<size_t>(c.length));
  }
  return text;
}

std::string_view strip_right(std::string_view text) {
  while (!text.empty()) {
    size_t at = text.size() - 1;
    while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    if (!is_space(decode_valid_utf8(text.data() + at).code)) break;
    text.remove_suffix(text.size() - at);
  }
  return text;
}

int64_t count_chars(std::string_view text) {
  return count_bytes(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

LineEnd next_line_end(std::string_view text, size_t at) {
  const auto may_begin = [&](size_t i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    return (byte >= 0x0A && byte <= 0x1E) || byte == 0xC2 || byte == 0xE2;
  };
  for (;; ++at) {
    at = find_position(at, text.size(), may_begin);
    const size_t size = at < text.size() ? line_end_size(text, at) : 0;
    if (size > 0 || at == text.size()) return {at, size};
  }
}

}  // namespace tokamak

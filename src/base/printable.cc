#include "base/printable.h"

#include <array>
#include <cstdio>

#include "base/utf8.h"

namespace tokamak {

namespace {

// False for C0 and C1 controls, direction marks, embeddings and isolates, Unicode line breaks and invisible tags.
bool is_shown(char32_t code) {
  const auto is_in = [code](char32_t first, char32_t last) { return first <= code && code <= last; };
  return !(code < 0x20 || is_in(0x7F, 0x9F) || is_in(0x200E, 0x200F) || is_in(0x2028, 0x202E) ||
           is_in(0x2066, 0x2069) || code == 0xFEFF || is_in(0xE0000, 0xE007F));
}

std::string escape(std::string_view bytes, char32_t code) {
  if (code == U'\n') return "\\n";
  if (code == U'\r') return "\\r";
  if (code == U'\t') return "\\t";
  std::array<char, 12> text{};
  if (code == kInvalidUtf8 || code < 0x80) {
    std::snprintf(text.data(), text.size(), "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(bytes[0])));
  } else {
    std::snprintf(text.data(), text.size(), "\\u%04x", static_cast<unsigned>(code));
  }
  return text.data();
}

// Removes the first character of `text` and returns its printable form.
std::string take_shown(std::string_view& text) {
  const Utf8Char one = decode_utf8(text);
  const std::string_view bytes = text.substr(0, static_cast<size_t>(one.length));
  text.remove_prefix(bytes.size());
  return one.code != kInvalidUtf8 && is_shown(one.code) ? std::string(bytes) : escape(bytes, one.code);
}

}  // namespace

std::string printable(std::string_view foreign, size_t limit) {
  std::string line;
  for (size_t shown = 0; !foreign.empty();) {
    const size_t before = foreign.size();
    const std::string one = take_shown(foreign);
    shown +=
        one.size() > before - foreign.size() ? one.size() : 1;  // an escape is ASCII, and longer than its character
    if (shown > limit) return line + "...";
    line += one;
  }
  return line;
}

std::string printable_lines(std::string_view text) {
  std::string lines;
  lines.reserve(text.size());
  while (!text.empty()) {
    if (text.front() != '\n') {
      lines += take_shown(text);
      continue;
    }
    text.remove_prefix(1);
    lines += '\n';
    if (text.substr(0, 2) != "  ") lines += "  ";
  }
  return lines;
}

}  // namespace tokamak

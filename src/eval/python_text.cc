#include "eval/python_text.h"

#include <clocale>
#include <cwctype>

#include "base/error.h"
#include "base/utf8.h"

namespace tokamak {

namespace {

// As str.isspace() of Python 3: Unicode's bidirectional type WS, B or S, or category Zs.
bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

Utf8Char last_char(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return decode_utf8(text.substr(begin));
}

// The C library's case mapping, in C.UTF-8: every system has it, and it covers all letters.
class Letters {
 public:
  Letters() : locale_(::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
    if (locale_ == nullptr) fail(Kind::kData, "the C library has no locale C.UTF-8", "it is in Debian's libc-bin");
  }
  ~Letters() { ::freelocale(locale_); }
  Letters(const Letters&) = delete;
  Letters& operator=(const Letters&) = delete;

  char32_t upper(char32_t c) const { return static_cast<char32_t>(::towupper_l(static_cast<wint_t>(c), locale_)); }
  char32_t lower(char32_t c) const { return static_cast<char32_t>(::towlower_l(static_cast<wint_t>(c), locale_)); }

 private:
  locale_t locale_;
};

}  // namespace

std::string_view python_rstrip(std::string_view text) {
  while (!text.empty()) {
    const Utf8Char last = last_char(text);
    if (!is_space(last.code)) break;
    text.remove_suffix(last.length);
  }
  return text;
}

std::string_view python_lstrip(std::string_view text) {
  while (!text.empty()) {
    const Utf8Char first = decode_utf8(text);
    if (!is_space(first.code)) break;
    text.remove_prefix(first.length);
  }
  return text;
}

std::string_view python_strip(std::string_view text) { return python_rstrip(python_lstrip(text)); }

int64_t python_len(std::string_view text) {
  int64_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

int64_t python_count_words(std::string_view text) {
  int64_t words = 1;
  bool in_space = false;
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    const bool space = is_space(c.code);
    words += space && !in_space ? 1 : 0;
    in_space = space;
    text.remove_prefix(c.length);
  }
  return words;
}

std::string python_capitalize(std::string_view text) {
  if (text.empty()) return "";
  const Letters letters;
  const Utf8Char first = decode_utf8(text);
  std::string out;
  append_utf8(letters.upper(first.code), out);
  return out + python_lower(text.substr(first.length));
}

std::string python_lower(std::string_view text) {
  const Letters letters;
  std::string out;
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    append_utf8(letters.lower(c.code), out);
    text.remove_prefix(c.length);
  }
  return out;
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (size_t at = 0;;) {
    const size_t found = text.find(from, at);
    out += text.substr(at, found - at);
    if (found == std::string_view::npos) return out;
    out += to;
    at = found + from.size();
  }
}

}  // namespace tokamak

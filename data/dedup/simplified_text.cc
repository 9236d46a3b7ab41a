#include "data/dedup/simplified_text.h"

#include <utf8proc.h>

#include <array>
#include <cstdint>

#include "base/utf8.h"
#include "data/rules/terminal_marks.h"
#include "data/rules/word_classes.h"

namespace tokamak {

namespace {

constexpr char32_t kSigma = 0x3A3, kFinalSigma = 0x3C2;
constexpr char32_t kDecimalMarks[] = {'.', ',', 0x60C, 0x66B, 0x2396, 0x2397, 0x2398};

bool is_digit(char32_t code) {
  if (code < 0x80) return code >= '0' && code <= '9';
  return utf8proc_category(static_cast<utf8proc_int32_t>(code)) == UTF8PROC_CATEGORY_ND;
}

// White space, and the punctuation that datatrove replaces by it: not all marks that end sentences are there.
bool is_gap(char32_t code) {
  const unsigned classes = word_classes()[code];
  if ((classes & kSpaceChar) != 0) return true;
  if ((classes & kSymbolChar) == 0) return false;
  return !is_terminal_mark(code) || code < 0x80 || code == 0x3002 || code == 0xFF01 || code == 0xFF0E || code == 0xFF1F;
}

// The end of the number that begins at `at`, with at most one decimal mark.
size_t number_end(std::string_view text, size_t at) {
  const auto digits_end = [&](size_t from) {
    while (from < text.size()) {
      const Utf8Char c = decode_valid_utf8(text.data() + from);
      if (!is_digit(c.code)) break;
      from += static_cast<size_t>(c.length);
    }
    return from;
  };
  const size_t end = digits_end(at);
  if (end == text.size()) return end;
  const Utf8Char mark = decode_valid_utf8(text.data() + end);
  for (const char32_t decimal : kDecimalMarks) {
    if (mark.code != decimal) continue;
    const size_t fraction = end + static_cast<size_t>(mark.length), fraction_end = digits_end(fraction);
    return fraction_end > fraction ? fraction_end : end;
  }
  return end;
}

char32_t lower_case(std::string_view text, size_t at, Utf8Char c) {
  if (c.code != kSigma) return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c.code)));
  const auto letter_at = [&](size_t i) { return is_letter(word_classes()[decode_valid_utf8(text.data() + i).code]); };
  const size_t next = at + 2;
  if (at == 0 || (next < text.size() && letter_at(next))) return kSigma + 0x20;
  size_t before = at - 1;
  while (before > 0 && (static_cast<unsigned char>(text[before]) & 0xC0) == 0x80) --before;
  return letter_at(before) ? kFinalSigma : kSigma + 0x20;
}

// The canonical decomposition without marks that take no space.
void append_base(char32_t code, std::string& out) {
  std::array<utf8proc_int32_t, 32> parts{};
  int boundary = 0;
  const utf8proc_ssize_t count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), parts.data(),
                                                         parts.size(), UTF8PROC_DECOMPOSE, &boundary);
  for (utf8proc_ssize_t i = 0; i < count && i < std::ssize(parts); ++i)
    if (utf8proc_category(parts[static_cast<size_t>(i)]) != UTF8PROC_CATEGORY_MN)
      append_utf8(static_cast<char32_t>(parts[static_cast<size_t>(i)]), out);
}

// The form of each character of ASCII. Digits are read as numbers before.
constexpr std::array<char, 128> ascii_forms() {
  std::array<char, 128> forms{};
  for (size_t i = 0; i < forms.size(); ++i) {
    const char c = static_cast<char>(i);
    const bool lower = c >= 'a' && c <= 'z', upper = c >= 'A' && c <= 'Z';
    forms[i] = lower ? c : upper ? static_cast<char>(c - 'A' + 'a') : ' ';
  }
  return forms;
}
constexpr std::array<char, 128> kAsciiForms = ascii_forms();

}  // namespace

void simplify_text(std::string_view text, std::string& out) {
  out.clear();
  bool gap = false;  // a space is due before the next character
  const auto before_char = [&] {
    if (gap && !out.empty()) out += ' ';
    gap = false;
  };
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_valid_utf8(text.data() + at);
    const char form = c.code < 0x80 ? kAsciiForms[c.code] : '\0';
    if (form > ' ') {
      before_char();
      out += form;
      ++at;
    } else if (is_digit(c.code)) {
      before_char();
      out += '0';
      at = number_end(text, at);
    } else if (form == ' ' || is_gap(c.code)) {
      gap = true;
      at += static_cast<size_t>(c.length);
    } else {
      before_char();
      append_base(c.code == 0x130 ? U'i' : lower_case(text, at, c), out);
      at += static_cast<size_t>(c.length);
    }
  }
}

}  // namespace tokamak

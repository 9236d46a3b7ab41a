// UTF-8 by SentencePiece's rules: no overlong forms, no surrogates, nothing above U+10FFFF; an invalid sequence is
// read byte by byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tokamak {

constexpr char32_t kInvalidUtf8 = 0xFFFFFFFF;
constexpr std::string_view kReplacementChar = "\xEF\xBF\xBD";  // U+FFFD

struct Utf8Char {
  char32_t code;   // kInvalidUtf8 if the bytes are not a character
  int64_t length;  // in bytes; 1 for an invalid byte
};

// The character at the start of `text`, which is not empty.
Utf8Char decode_utf8(std::string_view text);

bool is_valid_utf8(std::string_view text);

void append_utf8(char32_t code, std::string& text);  // `code` is at most U+10FFFF

// As decode_utf8 at `p`, for text known to be valid; twice as fast.
inline Utf8Char decode_valid_utf8(const char* p) {
  const auto b = [p](int i) { return static_cast<char32_t>(static_cast<unsigned char>(p[i])); };
  if (b(0) < 0x80) return {b(0), 1};
  if (b(0) < 0xE0) return {(b(0) & 0x1F) << 6 | (b(1) & 0x3F), 2};
  if (b(0) < 0xF0) return {(b(0) & 0x0F) << 12 | (b(1) & 0x3F) << 6 | (b(2) & 0x3F), 3};
  return {(b(0) & 0x07) << 18 | (b(1) & 0x3F) << 12 | (b(2) & 0x3F) << 6 | (b(3) & 0x3F), 4};
}

}  // namespace tokamak

#include "tokenizer/hf/byte_map.h"

#include <array>

#include "base/utf8.h"

namespace tokamak {

namespace {

constexpr char32_t kLastPrintable = 0x100 + 68;

constexpr bool is_own_printable(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct ByteMap {
  std::array<char32_t, 256> characters{};
  std::array<int16_t, kLastPrintable> bytes{};
};

constexpr ByteMap make_byte_map() {
  ByteMap map;
  for (int16_t& byte : map.bytes) byte = -1;
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const char32_t character = is_own_printable(byte) ? static_cast<char32_t>(byte) : next++;
    map.characters[static_cast<size_t>(byte)] = character;
    map.bytes[character] = static_cast<int16_t>(byte);
  }
  return map;
}

constexpr ByteMap kByteMap = make_byte_map();

}  // namespace

char32_t printable_of_byte(unsigned char byte) { return kByteMap.characters[byte]; }

int byte_of_printable(char32_t character) { return character < kLastPrintable ? kByteMap.bytes[character] : -1; }

void append_printable_bytes(std::string_view bytes, std::string& text) {
  for (const char byte : bytes) append_utf8(printable_of_byte(static_cast<unsigned char>(byte)), text);
}

std::optional<std::string> bytes_of_printable(std::string_view text) {
  std::string bytes;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_valid_utf8(text.data() + at);
    const int byte = byte_of_printable(c.code);
    if (byte < 0) return std::nullopt;
    bytes += static_cast<char>(byte);
    at += static_cast<size_t>(c.length);
  }
  return bytes;
}

}  // namespace tokamak

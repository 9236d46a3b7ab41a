#include "base/utf8.h"

#include <cstring>

namespace tokamak {

namespace {

// The bytes that a lead byte announces (0: not a lead byte), and the smallest code point that needs so many bytes.
struct Lead {
  int64_t length;
  char32_t smallest;
  unsigned payload;  // mask of the lead byte's own bits
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1, 0, 0x7F};
  if ((byte & 0xE0) == 0xC0) return {2, 0x80, 0x1F};
  if ((byte & 0xF0) == 0xE0) return {3, 0x800, 0x0F};
  if ((byte & 0xF8) == 0xF0) return {4, 0x10000, 0x07};
  return {0, 0, 0};
}

}  // namespace

Utf8Char decode_utf8(std::string_view text) {
  constexpr Utf8Char kInvalid = {kInvalidUtf8, 1};
  const auto first = static_cast<unsigned char>(text[0]);
  const Lead lead = lead_of(first);
  if (lead.length == 0 || lead.length > std::ssize(text)) return kInvalid;
  char32_t code = first & lead.payload;
  for (int64_t i = 1; i < lead.length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0) != 0x80) return kInvalid;
    code = code << 6 | (byte & 0x3Fu);
  }
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  if (code < lead.smallest || surrogate || code > 0x10FFFF) return kInvalid;
  return {code, lead.length};
}

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    uint64_t eight = 0;
    if (text.size() >= sizeof(eight)) {
      std::memcpy(&eight, text.data(), sizeof(eight));
      if ((eight & 0x8080808080808080u) == 0) {
        text.remove_prefix(sizeof(eight));
        continue;
      }
    }
    const Utf8Char c = decode_utf8(text);
    if (c.code == kInvalidUtf8) return false;
    text.remove_prefix(c.length);
  }
  return true;
}

}  // namespace tokamak

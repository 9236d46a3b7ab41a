// Keys and hashes of pretokens. A pretoken of at most 15 bytes is its own key.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tokamak {

struct PretokenKey {
  static constexpr size_t kLongest = 15;  // bytes
  uint64_t low;
  uint64_t high;  // its top byte is the length
  bool operator==(const PretokenKey&) const = default;
};

inline uint64_t load_u64(const char* at) {
  uint64_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

__extension__ using Product = unsigned __int128;

inline uint64_t mix(uint64_t a, uint64_t b) {
  const auto product = Product{a} * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t hash_of(PretokenKey key) { return mix(key.low ^ 0x2D358DCCAA6C78A5u, key.high ^ 0x8BB84B93962EACC9u); }

// `text` has at most kLongest bytes.
inline PretokenKey key_of(std::string_view text) {
  char bytes[16] = {};
  std::memcpy(bytes, text.data(), text.size());
  bytes[15] = static_cast<char>(text.size());
  return {load_u64(bytes), load_u64(bytes + 8)};
}

// `text` has more than kLongest bytes.
inline uint64_t hash_long(std::string_view text) {
  uint64_t hash = text.size();
  size_t at = 0;
  for (; at + 16 <= text.size(); at += 16) {
    hash = mix(load_u64(text.data() + at) ^ 0x2D358DCCAA6C78A5u, load_u64(text.data() + at + 8) ^ hash);
  }
  const char* tail = text.data() + text.size() - 16;
  return mix(load_u64(tail) ^ 0x8BB84B93962EACC9u, load_u64(tail + 8) ^ hash);
}

// Whether a byte may begin a character of three or four bytes. Other scripts have spaces between words.
inline bool is_wide(std::string_view text) {
  bool wide = false;
  for (const char byte : text) wide |= static_cast<uint8_t>(byte) >= 0xE0;
  return wide;
}

inline uint64_t hash_text(std::string_view text) {
  return text.size() <= PretokenKey::kLongest ? hash_of(key_of(text)) : hash_long(text);
}

}  // namespace tokamak

// Hashes of the words of a text, for counting equal ones.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/hash.h"

namespace tokamak {

// Lengths of words are hard to predict, so it does not branch on them: it reads 16 bytes of the text, and clears those
// behind the word. Only longer words cost a call.
class WordHasher {
 public:
  explicit WordHasher(std::string_view text) : end_(text.data() + text.size()) {}

  uint64_t operator()(std::string_view word) const {  // which is in the text
    __extension__ using Product = unsigned __int128;
    const size_t size = word.size();
    if (size > 16) return xxh3_64(std::as_bytes(std::span(word)));
    std::array<uint64_t, 2> halves{};
    if (end_ - word.data() >= 16)
      std::memcpy(halves.data(), word.data(), 16);
    else
      std::memcpy(halves.data(), word.data(), size);
    const size_t in_front = std::min<size_t>(size, 8);
    const uint64_t front = halves[0] & kFirstBytes[in_front], back = halves[1] & kFirstBytes[size - in_front];
    const Product product = Product{front ^ 0x9E3779B97F4A7C15ULL} * (back ^ 0xD6E8FEB86659FD93ULL ^ size << 56);
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }

 private:
  static constexpr std::array<uint64_t, 9> kFirstBytes = [] {  // of a little-endian number
    std::array<uint64_t, 9> masks{};
    for (size_t i = 1; i < masks.size(); ++i) masks[i] = masks[i - 1] << 8 | 0xFF;
    return masks;
  }();
  const char* end_;
};

}  // namespace tokamak

// A hash of a word, without a call for words of at most 16 bytes, which most are.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/hash.h"

namespace tokamak {

inline uint64_t word_hash(std::string_view word) {
  __extension__ using Product = unsigned __int128;
  const auto load = [&]<class T>(T value, size_t at) {
    std::memcpy(&value, word.data() + at, sizeof value);
    return uint64_t{value};
  };
  const size_t size = word.size();
  uint64_t front = 0, back = 0;
  if (size > 16) return xxh3_64(std::as_bytes(std::span(word)));
  if (size >= 8)
    front = load(uint64_t{}, 0), back = load(uint64_t{}, size - 8);
  else if (size >= 4)
    front = load(uint32_t{}, 0), back = load(uint32_t{}, size - 4);
  else if (size > 0)
    front = load(uint8_t{}, 0), back = load(uint8_t{}, size / 2) << 8 | load(uint8_t{}, size - 1);
  const Product product = Product{front ^ 0x9E3779B97F4A7C15ULL} * (back ^ 0xD6E8FEB86659FD93ULL ^ size << 56);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace tokamak

// Where a pretoken may be cut, so that its parts can be merged separately: between two characters that no result of a
// merge contains next to each other. Such a cut never changes the ids. Chinese clauses become words that way.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace tokamak {

class CutRule {
 public:
  CutRule();
  void add(std::string_view piece);  // a result of a merge; any bytes

  // The length of the first part of `text`, which is not empty. It is the whole text if that is not valid UTF-8 up to
  // the cut.
  size_t first_part(std::string_view text) const;

 private:
  // The bytes of a character, or some of them, the first one lowest.
  static uint32_t packed(const char* at, size_t length) {
    uint32_t bytes = 0;
    std::memcpy(&bytes, at, length);
    return bytes;
  }
  static uint64_t bit_of(uint32_t left, uint32_t right) {
    return ((uint64_t{left} << 32 | right) * 0x9E3779B97F4A7C15u) >> (64 - kBits);
  }
  static bool is_set(const std::vector<uint64_t>& bits, uint64_t bit) { return (bits[bit / 64] >> bit % 64 & 1) != 0; }

  bool may_join(const char* left, size_t left_length, const char* right, size_t right_length) const;
  bool may_join_partly(const char* left, size_t left_length, const char* right, size_t right_length) const;

  static constexpr int kBits = 20;
  // A set bit says that a piece may contain the pair. Different pairs may share a bit, which only costs a cut.
  std::vector<uint64_t> pairs_;         // of whole characters
  std::vector<uint64_t> partly_;        // of a character and a part of one, or of two parts
  std::vector<uint64_t> partly_bytes_;  // (256, 256): the two bytes at the cut of each pair in partly_
};

}  // namespace tokamak

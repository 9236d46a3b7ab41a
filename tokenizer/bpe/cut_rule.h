// Cuts a pretoken into parts that can be merged separately. A cut lies between two characters that no result of a merge
// contains next to each other. Such a cut never changes the ids. Chinese clauses become words that way.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace tokamak {

class CutRule {
 public:
  CutRule();
  void add(std::string_view piece);  // a result of a merge; any bytes

  // Writes the ends of the first parts of `text`, until `ends` is nearly full or the text is at its end, and returns
  // their number. `text` is not empty, and `ends` has at least two elements.
  size_t cut(std::string_view text, std::span<uint32_t> ends) const;

 private:
  // The bytes of a character, or some of them, the first one lowest.
  static uint32_t packed(std::string_view bytes) {
    uint32_t value = 0;
    std::memcpy(&value, bytes.data(), bytes.size() < 4 ? bytes.size() : 4);
    return value;
  }
  static uint64_t bit_of(uint32_t left, uint32_t right) {
    return ((uint64_t{left} << 32 | right) * 0x9E3779B97F4A7C15u) >> (64 - kBits);
  }
  static bool is_set(const std::vector<uint64_t>& bits, uint64_t bit) { return (bits[bit / 64] >> bit % 64 & 1) != 0; }

  bool may_join_partly(uint32_t left, uint32_t right) const;

  static constexpr int kBits = 18;
  // A set bit says that a piece may contain the pair. Different pairs may share a bit, which only costs a cut.
  std::vector<uint64_t> pairs_;         // of whole characters
  std::vector<uint64_t> partly_;        // of a character and a part of one, or of two parts
  std::vector<uint64_t> partly_bytes_;  // (256, 256): the two bytes at the cut of each pair in partly_
};

}  // namespace tokamak

// Searches and counts over the bytes of a text, many at a time.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "data/rules/ascii.h"

namespace tokamak {

static_assert(std::endian::native == std::endian::little, "the first byte of a number is its lowest");

// A loop of this length without branches becomes vector instructions. So may_begin and wanted below have none.
constexpr size_t kByteBlock = 32;

// The first position from `at` on for which may_begin(i), or `end`.
template <class MayBegin>
size_t find_position(size_t at, size_t end, const MayBegin& may_begin) {
  for (; at + kByteBlock <= end; at += kByteBlock) {
    unsigned char any = 0;
    for (size_t i = 0; i < kByteBlock; ++i) any = static_cast<unsigned char>(any | (may_begin(at + i) ? 1 : 0));
    if (any != 0) break;
  }
  while (at < end && !may_begin(at)) ++at;
  return at;
}

// The bytes for which wanted(c).
template <class Wanted>
int64_t count_bytes(std::string_view text, const Wanted& wanted) {
  int64_t count = 0;
  size_t at = 0;
  for (; at + kByteBlock <= text.size(); at += kByteBlock) {
    uint8_t in_block = 0;
    for (size_t i = 0; i < kByteBlock; ++i) in_block = static_cast<uint8_t>(in_block + (wanted(text[at + i]) ? 1 : 0));
    count += in_block;
  }
  for (; at < text.size(); ++at) count += wanted(text[at]) ? 1 : 0;
  return count;
}

// The first byte from `at` on that is not ASCII, or the text's size.
inline size_t find_non_ascii(std::string_view text, size_t at) {
  for (uint64_t bytes; at + sizeof bytes <= text.size(); at += sizeof bytes) {
    std::memcpy(&bytes, text.data() + at, sizeof bytes);
    const uint64_t high_bits = bytes & 0x8080808080808080;
    if (high_bits != 0) return at + static_cast<size_t>(std::countr_zero(high_bits)) / 8;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

// The first byte from `at` on that is no ASCII letter, or the text's size.
inline size_t find_non_letter(std::string_view text, size_t at) {
  constexpr uint64_t kOnes = 0x0101010101010101, kHigh = 0x80 * kOnes;
  for (uint64_t bytes; at + sizeof bytes <= text.size(); at += sizeof bytes) {
    std::memcpy(&bytes, text.data() + at, sizeof bytes);
    // Eight comparisons in one sum: a byte's high bit is its result. No byte overflows into the next one.
    const uint64_t lower = (bytes | 0x20 * kOnes) & ~kHigh;
    const uint64_t at_least_a = lower + (0x80 - 'a') * kOnes, above_z = lower + (0x7F - 'z') * kOnes;
    const uint64_t others = (~at_least_a | above_z | bytes) & kHigh;
    if (others != 0) return at + static_cast<size_t>(std::countr_zero(others)) / 8;
  }
  while (at < text.size() && is_ascii_letter(text[at])) ++at;
  return at;
}

// Whether ranges of a text, asked for in ascending order, have a byte that find(at) finds from `at` on.
template <class Find>
class FoundInRanges {
 public:
  explicit FoundInRanges(const Find& find) : find_(find), next_(find(0)) {}

  bool within(size_t begin, size_t end) {
    if (next_ < begin) next_ = find_(begin);
    return next_ < end;
  }

 private:
  Find find_;
  size_t next_;
};

}  // namespace tokamak

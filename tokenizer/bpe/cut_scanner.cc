#include "tokenizer/bpe/cut_scanner.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace tokamak {

namespace {

constexpr uint8_t kCut = 0x80;
constexpr uint8_t kCheck = 0x40;  // the pair of characters decides
constexpr size_t kBlock = 64;     // borders
constexpr size_t kOvershoot = 8;  // ends that are written behind the last one

uint8_t byte_at(const char* p) { return static_cast<uint8_t>(*p); }
bool continues_character(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

// The character before `at` and the first three bytes of the one there, which has at least as many.
uint64_t characters_around(const char* at) {
  uint64_t left = byte_at(at - 1);
  if (left >= 0x80) {
    left |= uint64_t{byte_at(at - 2)} << 8;
    if (continues_character(at[-2])) left |= uint64_t{byte_at(at - 3)} << 16;
  }
  return left << 24 | uint64_t{byte_at(at)} << 16 | uint64_t{byte_at(at + 1)} << 8 | byte_at(at + 2);
}

}  // namespace

CutScanner::CutScanner(std::span<const std::string_view> pieces) : borders_(size_t{1} << 16) {
  for (size_t i = 0; i < borders_.size(); ++i) borders_[i] = continues_character(static_cast<char>(i >> 8)) ? 0 : kCut;
  std::vector<uint64_t> pairs;
  for (const std::string_view piece : pieces) {
    for (size_t cut = 1; cut < piece.size(); ++cut) {
      if (continues_character(piece[cut])) continue;
      const uint8_t second = byte_at(piece.data() + cut);
      borders_[size_t{second} << 8 | byte_at(piece.data() + cut - 1)] = second >= 0xE0 ? kCheck : 0;
      if (second >= 0xE0) pairs.push_back(characters_around(piece.data() + cut));
    }
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  const uint64_t bits = std::bit_ceil(std::max<uint64_t>(16 * pairs.size(), 1024));
  shift_ = 64 - std::countr_zero(bits);
  pairs_.resize(bits / 64);
  for (const uint64_t pair : pairs) pairs_[bit_of(pair) / 64] |= uint64_t{1} << bit_of(pair) % 64;
}

bool CutScanner::may_join(const char* at) const {
  const uint64_t bit = bit_of(characters_around(at));
  return (pairs_[bit / 64] >> bit % 64 & 1) != 0;
}

// Bit i is the border before before[i + 1].
CutScanner::Masks CutScanner::masks_of(const char* before, size_t size) const {
  const uint8_t* borders = borders_.data();
  alignas(32) std::array<uint8_t, kBlock> found;
  const auto border = [&](size_t i) {
    uint16_t bytes;
    std::memcpy(&bytes, before + i, sizeof bytes);
    return borders[bytes];
  };
  if (size == kBlock) {
#pragma GCC unroll 16
    for (size_t i = 0; i < kBlock; ++i) found[i] = border(i);
  } else {
    found.fill(0);
    for (size_t i = 0; i < size; ++i) found[i] = border(i);
  }
  const auto* halves = reinterpret_cast<const __m256i*>(found.data());
  const auto mask = [](__m256i low, __m256i high) {
    return uint64_t{static_cast<uint32_t>(_mm256_movemask_epi8(high))} << 32 |
           static_cast<uint32_t>(_mm256_movemask_epi8(low));
  };
  return {mask(halves[0], halves[1]), mask(_mm256_slli_epi16(halves[0], 1), _mm256_slli_epi16(halves[1], 1))};
}

size_t CutScanner::scan(std::string_view text, size_t at, std::span<uint32_t> ends) const {
  if (at == text.size() || ends.empty()) return 0;
  size_t count = 0;
  for (size_t border = at + 1; border < text.size(); border += kBlock) {
    Masks masks = masks_of(text.data() + border - 1, std::min(kBlock, text.size() - border));
    for (uint64_t rest = masks.check; rest != 0; rest &= rest - 1) {
      const int i = std::countr_zero(rest);
      masks.cut |= uint64_t{may_join(text.data() + border + static_cast<size_t>(i)) ? 0u : 1u} << i;
    }
    const auto cuts = static_cast<size_t>(std::popcount(masks.cut));
    if (count + cuts + kOvershoot > ends.size()) {
      for (; masks.cut != 0 && count < ends.size(); masks.cut &= masks.cut - 1) {
        ends[count++] = static_cast<uint32_t>(border) + static_cast<uint32_t>(std::countr_zero(masks.cut));
      }
      if (count == ends.size()) return count;
      continue;
    }
    uint32_t* out = ends.data() + count;
    for (size_t written = 0; written < cuts; written += kOvershoot) {
      for (size_t i = 0; i < kOvershoot; ++i, masks.cut &= masks.cut - 1) {
        *out++ = static_cast<uint32_t>(border) + static_cast<uint32_t>(std::countr_zero(masks.cut));
      }
    }
    count += cuts;
  }
  ends[count++] = static_cast<uint32_t>(text.size());
  return count;
}

}  // namespace tokamak

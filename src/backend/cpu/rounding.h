// The random words of StochasticRounding (ops.h), many blocks at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "backend/formulas.h"

namespace tokamak {

inline constexpr int64_t kRoundingTile = 256;  // blocks per call: each round is a loop over all, which vectorises

// The words of `count` <= kRoundingTile blocks, as rounding_words() has them.
inline void draw_blocks(const RoundingStream& stream, uint64_t first, int64_t count, uint32_t* words) {
  constexpr int kWords = RoundingStream::kWords;
  uint32_t c0[kRoundingTile], c1[kRoundingTile], c2[kRoundingTile], c3[kRoundingTile];
  const auto step_low = static_cast<uint32_t>(stream.step), step_high = static_cast<uint32_t>(stream.step >> 32);
  for (int64_t b = 0; b < count; ++b) {
    const uint64_t block = first + static_cast<uint64_t>(b);
    c0[b] = static_cast<uint32_t>(block);
    c1[b] = static_cast<uint32_t>(block >> 32);
    c2[b] = step_low;
    c3[b] = step_high;
  }
  std::array<uint32_t, 2> key = stream.key;
  for (int round = 0; round < rng_formulas::kPhiloxRounds; ++round) {
#pragma omp simd
    for (int64_t b = 0; b < count; ++b) rng_formulas::philox_round(c0[b], c1[b], c2[b], c3[b], key);
    rng_formulas::bump_key(key);
  }
#pragma omp simd
  for (int64_t b = 0; b < count; ++b) {
    words[kWords * b] = c0[b];
    words[kWords * b + 1] = c1[b];
    words[kWords * b + 2] = c2[b];
    words[kWords * b + 3] = c3[b];
  }
}

// Calls body(first, last, words) for ranges that make up [begin, end); words[i - first] is that of element i. State in
// f32 is one range, and takes no words.
template <class State, class Body>
void with_rounding_words(const RoundingStream& stream, int64_t begin, int64_t end, const Body& body) {
  if constexpr (std::is_same_v<State, float>) {
    body(begin, end, static_cast<const uint32_t*>(nullptr));
  } else {
    constexpr int kWords = RoundingStream::kWords;
    uint32_t words[kRoundingTile * kWords];
    for (int64_t first = begin, last = end; first < end; first = last) {
      const uint64_t index = stream.first + static_cast<uint64_t>(first);
      const auto lane = static_cast<int64_t>(index % kWords);  // a slice may begin inside a block
      last = std::min(end, first + kRoundingTile * kWords - lane);
      draw_blocks(stream, index / kWords, (lane + last - first + kWords - 1) / kWords, words);
      body(first, last, words + lane);
    }
  }
}

}  // namespace tokamak

// Element-wise kernels on slices of flat arrays. A slice may start at any element, but usually starts at the same one
// in every array. Then a thread has kFlatWidth elements: f32 by 16 bytes, bf16 by 8.
#pragma once

#include <cstdint>
#include <type_traits>

#include "backend/formulas.h"
#include "cuda/launch.h"
#include "cuda/vec.h"

namespace tokamak {

inline constexpr int kFlatThreads = 256;
inline constexpr int kFlatWidth = kVecWidth<float>;

// Whether the elements of a thread are those of one Philox block. This holds for slices of units, which begin at a
// multiple of UnitLayout::kAlignment.
inline bool starts_at_a_block(const RoundingStream& stream, int64_t skew) {
  static_assert(kFlatWidth == RoundingStream::kWords);
  return (stream.first + kFlatWidth - static_cast<uint64_t>(skew)) % kFlatWidth == 0;
}

// On the host: calls body<kWidth>(blocks, skew) with the widest access that the arrays (all but the first may be null)
// allow. The kernel's elements are counted from `skew` elements before the arrays, so that vectors are aligned. `drawn`
// is null where no words are drawn.
template <class Body, class First, class... Others>
void with_flat_width(int64_t count, const RoundingStream* drawn, const Body& body, const First* first,
                     const Others*... others) {
  const int64_t skew = skew_of(first) % kFlatWidth;
  const bool equal = ((others == nullptr || skew_of(others) % kFlatWidth == skew) && ...);
  if (count > 0 && equal && (drawn == nullptr || starts_at_a_block(*drawn, skew))) {
    body.template operator()<kFlatWidth>(blocks_for(skew + count, int64_t{kFlatThreads} * kFlatWidth), skew);
  } else {
    body.template operator()<1>(blocks_for(count, kFlatThreads), int64_t{0});
  }
}

// In a kernel: calls visit<kWidth>(i) for this thread's elements from i on, or visit<1>(i) for each where the arrays
// have not all of them.
template <int kWidth, class Visit>
__device__ void for_own_elements(int64_t count, int64_t skew, const Visit& visit) {
  const int64_t first = (int64_t{blockIdx.x} * kFlatThreads + threadIdx.x) * kWidth - skew;
  if (0 <= first && first + kWidth <= count) return visit.template operator()<kWidth>(first);
  for (int64_t i = max(first, int64_t{0}); i < min(first + kWidth, count); ++i) visit.template operator()<1>(i);
}

template <int kWidth>
struct RandomWords {
  uint32_t of[kWidth];
};

// The random words that round State, for elements i ... i + kWidth - 1. If several, they are one whole Philox block
// (starts_at_a_block).
template <class State, int kWidth>
__device__ RandomWords<kWidth> draw(const RoundingStream& stream, int64_t i) {
  static_assert(kWidth == 1 || kWidth == RoundingStream::kWords);
  if constexpr (std::is_same_v<State, float>) {
    return {};
  } else {
    const uint64_t index = stream.first + static_cast<uint64_t>(i);
    const auto block = rounding_words(stream, index / RoundingStream::kWords);
    if constexpr (kWidth == 1) {
      const uint32_t lane = index % RoundingStream::kWords;  // block[lane] would put the block into memory
      return {{lane == 0 ? block[0] : lane == 1 ? block[1] : lane == 2 ? block[2] : block[3]}};
    } else {
      return {{block[0], block[1], block[2], block[3]}};
    }
  }
}

__device__ inline void store_bits(bf16* to, const bf16 (&x)[1]) { *to = x[0]; }
__device__ inline void store_bits(bf16* to, const bf16 (&x)[4]) {
  *reinterpret_cast<uint2*>(to) =
      make_uint2(x[0].bits | uint32_t{x[1].bits} << 16, x[2].bits | uint32_t{x[3].bits} << 16);
}

// Stores state: f32 as it is, bf16 rounded by round(value, word).
template <int kWidth, class Round>
__device__ void store_state(float* to, const Vec<kWidth>& x, const RandomWords<kWidth>&, const Round&) {
  store(to, x);
}
template <int kWidth, class Round>
__device__ void store_state(bf16* to, const Vec<kWidth>& x, const RandomWords<kWidth>& words, const Round& round) {
  bf16 rounded[kWidth];
#pragma unroll
  for (int k = 0; k < kWidth; ++k) rounded[k] = round(x[k], words.of[k]);
  store_bits(to, rounded);
}

}  // namespace tokamak

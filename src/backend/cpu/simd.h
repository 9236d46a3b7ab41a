// Float vectors of the processor's register width, in GCC's vector extension: the same source runs on any
// processor. Intrinsics appear only for instructions that the extension cannot express.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "base/bf16.h"

#if defined(__AVX512F__) || defined(__FMA__)
#include <immintrin.h>
#endif

namespace tokamak::simd {

#if defined(__AVX512F__)
inline constexpr int kLanes = 16;
#elif defined(__AVX__)
inline constexpr int kLanes = 8;
#else
inline constexpr int kLanes = 4;
#endif

using Vec [[gnu::vector_size(kLanes * 4)]] = float;
using Ints [[gnu::vector_size(kLanes * 4)]] = int32_t;

inline int64_t round_up(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

inline Vec splat(float x) { return Vec{} + x; }

inline Vec load(const float* from) {
  Vec x;
  std::memcpy(&x, from, sizeof(x));
  return x;
}
inline Vec load(const bf16* from) {
  using Shorts [[gnu::vector_size(kLanes * 2)]] = uint16_t;
  Shorts bits;
  std::memcpy(&bits, from, sizeof(bits));
  return reinterpret_cast<Vec>(__builtin_convertvector(bits, Ints) << 16);
}

// Loads the first `count` lanes from memory, and fills the other lanes with `rest`.
template <class T>
Vec load_part(const T* from, int64_t count, float rest) {
  T part[kLanes];
  for (int i = 0; i < kLanes; ++i) part[i] = i < count ? from[i] : T(rest);
  return load(part);
}

inline void store(float* to, Vec x) { std::memcpy(to, &x, sizeof(x)); }
inline void store(bf16* to, Vec x) {
#if defined(__AVX512BF16__)
  const __m256bh rounded = _mm512_cvtneps_pbh(x);
  std::memcpy(to, &rounded, sizeof(rounded));
#else
  for (int i = 0; i < kLanes; ++i) to[i] = bf16(x[i]);
#endif
}

template <class T>
void store_part(T* to, int64_t count, Vec x) {
  T part[kLanes];
  store(part, x);
  std::memcpy(to, part, static_cast<size_t>(count) * sizeof(T));
}

// a b + c, rounded once where the processor can. Written as a product and a sum, GCC fuses some of them and not others,
// as it thinks fast: the same row would have other bits in another loop.
inline Vec multiply_add(Vec a, Vec b, Vec c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}

// The greater of each pair of lanes. NaN in b is kept; NaN in a is lost.
inline Vec maximum(Vec a, Vec b) {
#if defined(__AVX512F__)
  return _mm512_maskz_max_ps(0xFFFF, a, b);  // g++ 12 warns in its own header about the unmasked form
#else
  return a > b ? a : b;
#endif
}

inline float sum(Vec x) {
  float total = 0;
  for (int i = 0; i < kLanes; ++i) total += x[i];
  return total;
}

inline Ints lane_numbers() {
  Ints out;
  for (int i = 0; i < kLanes; ++i) out[i] = i;
  return out;
}

// 2^x for finite x <= 128, within two units in the last place; at most 2^-126 for x < -126; NaN for NaN. Above 128 it
// is any value: callers do not use it there, as for keys that causal attention masks.
// x = n + r with n whole, |r| <= 1/2; 2^r by the polynomial of degree 5 nearest in relative error.
inline Vec exp2(Vec x) {
#if defined(__AVX512F__)
  const Vec whole = _mm512_maskz_roundscale_ps(0xFFFF, x, 0);  // rounds to nearest
#else
  constexpr float kRounder = 0x1.8p23f;  // adding it leaves the nearest integer in the low bits
  x = maximum(splat(-126.0f), x);
  const Vec shifted = x + kRounder;
  const Vec whole = shifted - kRounder;
#endif
  const Vec r = x - whole;
  Vec p = splat(1.32647272e-3f);
  p = p * r + 9.67151268e-3f;
  p = p * r + 5.55073374e-2f;
  p = p * r + 2.40222421e-1f;
  p = p * r + 6.93146978e-1f;
  p = p * r + 1.0f;
#if defined(__AVX512F__)
  return _mm512_maskz_scalef_ps(0xFFFF, p, whole);
#else
  using Words [[gnu::vector_size(kLanes * 4)]] = uint32_t;  // which wrap around; ints must not
  return reinterpret_cast<Vec>(reinterpret_cast<Words>(p) + (reinterpret_cast<Words>(shifted) << 23));
#endif
}

// Exchanges the lanes of a whose numbers have the bit kDistance with those of b that have not.
template <int kDistance>
inline void swap_lanes(Vec& a, Vec& b) {
  Ints low, high;
  for (int i = 0; i < kLanes; ++i) {
    low[i] = (i & kDistance) != 0 ? kLanes + i - kDistance : i;
    high[i] = (i & kDistance) != 0 ? kLanes + i : i + kDistance;
  }
  const Vec from_a = a, from_b = b;
  a = __builtin_shuffle(from_a, from_b, low);
  b = __builtin_shuffle(from_a, from_b, high);
}

// Transposes a square of words in registers, by log2(kLanes) rounds of swaps at doubling distances.
template <int kDistance = 1>
inline void transpose(Vec (&rows)[kLanes]) {
  if constexpr (kDistance < kLanes) {
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      if ((i & kDistance) == 0) swap_lanes<kDistance>(rows[i], rows[i + kDistance]);
    }
    transpose<2 * kDistance>(rows);
  }
}

// Lane i is the sum of the lanes of rows[i], by rounds as in transpose() that halve the rows. The order of a row's sum
// does not depend on i.
template <int kDistance = 1>
inline Vec sums_of_rows(Vec (&rows)[kLanes]) {
  if constexpr (kDistance == kLanes) {
    return rows[0];
  } else {
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; i += 2 * kDistance) {
      swap_lanes<kDistance>(rows[i], rows[i + kDistance]);
      rows[i] += rows[i + kDistance];
    }
    return sums_of_rows<2 * kDistance>(rows);
  }
}

}  // namespace tokamak::simd

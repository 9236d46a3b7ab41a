// GEMMs of small packed matrices in cache, the inner loops of attention: C (M, N) = A B [+ C], with f32 sums.
//
// Operands have type TileElement<T>: bf16 if the processor multiplies pairs of bf16, else f32. With kPair terms of
// the sum side by side (2 for bf16, 1 for f32):
//   A format: (M, K) row-major, K a multiple of kPair;
//   B format: (K / kPair, N, kPair), N a multiple of kLanes.
#pragma once

#include <type_traits>

#include "backend/cpu/simd.h"

namespace tokamak::simd {

#if defined(__AVX512BF16__)
template <class T>
using TileElement = T;
#else
template <class T>
using TileElement = float;
#endif

template <class E>
inline constexpr int kPair = std::is_same_v<E, bf16> ? 2 : 1;

// Stores a row of an A format.
template <class E>
inline void store_a(E* to, Vec x) {
  store(to, x);
}

// Stores rows k and k + 1 (even k) of a B format whose rows have n columns.
inline void store_b(float* to, int64_t n, Vec x, Vec y) {
  store(to, x);
  store(to + n, y);
}
#if defined(__AVX512BF16__)
inline void store_b(bf16* to, int64_t, Vec x, Vec y) {
  using Words [[gnu::vector_size(64)]] = short;
  const auto halves = reinterpret_cast<Words>(_mm512_cvtne2ps_pbh(y, x));  // x in the lower half, y in the upper
  constexpr Words kInterleave = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const Words mixed = __builtin_shuffle(halves, kInterleave);
  std::memcpy(to, &mixed, sizeof(mixed));
}
#endif

// Multiplies a pair of A, broadcast to all lanes, with a vector of pairs of B, and adds to sums.
template <class E>
struct Pairs;
template <>
struct Pairs<float> {
  using Vector = Vec;
  static Vector broadcast(const float* a) { return splat(*a); }
  static Vector load(const float* b) { return simd::load(b); }
  static Vec multiply_add(Vector a, Vector b, Vec c) { return simd::multiply_add(a, b, c); }
};
#if defined(__AVX512BF16__)
template <>
struct Pairs<bf16> {
  using Vector = __m512bh;
  static Vector broadcast(const bf16* a) {
    int32_t pair;
    std::memcpy(&pair, a, sizeof(pair));
    return reinterpret_cast<Vector>(_mm512_set1_epi32(pair));
  }
  static Vector load(const bf16* b) { return reinterpret_cast<Vector>(_mm512_loadu_si512(b)); }
  static Vec multiply_add(Vector a, Vector b, Vec c) { return _mm512_dpbf16_ps(c, a, b); }
};
#endif

enum class Start { kZero, kOutput };

// kRows x (kVecs kLanes) elements of C, held in registers over the whole sum.
template <class E, int kRows, int kVecs>
inline void multiply_block(const E* a, int64_t a_stride, const E* b, int64_t n, float* c, int64_t c_stride, int64_t k,
                           Start start) {
  using P = Pairs<E>;
  Vec sums[kRows][kVecs];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) sums[r][v] = start == Start::kZero ? Vec{} : load(c + r * c_stride + v * kLanes);
  }
  for (int64_t i = 0; i < k; i += kPair<E>) {
    typename P::Vector right[kVecs];
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) right[v] = P::load(b + i * n + v * kLanes * kPair<E>);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const auto left = P::broadcast(a + r * a_stride + i);
#pragma GCC unroll 4
      for (int v = 0; v < kVecs; ++v) sums[r][v] = P::multiply_add(left, right[v], sums[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) store(c + r * c_stride + v * kLanes, sums[r][v]);
  }
}

// Registers: kBlockRows x kBlockVecs sums, kBlockVecs of B, one of A.
inline constexpr int kBlockRows = 6;
inline constexpr int kBlockVecs = kLanes == 16 ? 4 : 2;

// A strip of C of kVecs vectors: all rows, in blocks.
template <class E, int kVecs>
void multiply_strip(const E* a, int64_t a_stride, const E* b, int64_t n, float* c, int64_t c_stride, int64_t m,
                    int64_t k, Start start) {
  int64_t r = 0;
  for (; r + kBlockRows <= m; r += kBlockRows) {
    multiply_block<E, kBlockRows, kVecs>(a + r * a_stride, a_stride, b, n, c + r * c_stride, c_stride, k, start);
  }
  const auto rest = [&]<int kRows>(std::integral_constant<int, kRows>) {
    multiply_block<E, kRows, kVecs>(a + r * a_stride, a_stride, b, n, c + r * c_stride, c_stride, k, start);
  };
  switch (m - r) {
    case 5:
      return rest(std::integral_constant<int, 5>{});
    case 4:
      return rest(std::integral_constant<int, 4>{});
    case 3:
      return rest(std::integral_constant<int, 3>{});
    case 2:
      return rest(std::integral_constant<int, 2>{});
    case 1:
      return rest(std::integral_constant<int, 1>{});
    default:
      return;
  }
}

template <class E>
struct TileProduct {
  const E* a;        // A format (m, k)
  int64_t a_stride;  // elements between rows of A
  const E* b;        // B format (k, n)
  float* c;          // (m, n) row-major, contiguous
  int64_t m, n, k;
  Start start = Start::kZero;  // kOutput: C is added to
};

template <class E>
void multiply(const TileProduct<E>& p) {
  for (int64_t j = 0; j < p.n; j += kBlockVecs * kLanes) {
    const E* b = p.b + j * kPair<E>;
    switch ((p.n - j) / kLanes) {
      case 1:
        multiply_strip<E, 1>(p.a, p.a_stride, b, p.n, p.c + j, p.n, p.m, p.k, p.start);
        break;
#if defined(__AVX512F__)
      case 2:
        multiply_strip<E, 2>(p.a, p.a_stride, b, p.n, p.c + j, p.n, p.m, p.k, p.start);
        break;
      case 3:
        multiply_strip<E, 3>(p.a, p.a_stride, b, p.n, p.c + j, p.n, p.m, p.k, p.start);
        break;
#endif
      default:
        multiply_strip<E, kBlockVecs>(p.a, p.a_stride, b, p.n, p.c + j, p.n, p.m, p.k, p.start);
    }
  }
}

}  // namespace tokamak::simd

// Converts rows of tensors to the formats of tile.h, and results back. Tokens are rows, features are columns. Rows past
// the last token are zeros, so they add nothing to any sum.
#pragma once

#include <algorithm>

#include "backend/cpu/tile.h"

namespace tokamak::simd {

// to[r][c] = from[r][c], row-major and contiguous: the A format summed over features. Zeros in rows [count, rows).
template <class T, class E>
void copy_rows(const T* from, int64_t stride, int64_t count, int64_t rows, int64_t columns, E* to) {
  for (int64_t r = 0; r < count; ++r) {
    if constexpr (std::is_same_v<T, E>) {
      std::memcpy(to + r * columns, from + r * stride, static_cast<size_t>(columns) * sizeof(E));
    } else {
      for (int64_t c = 0; c < columns; ++c) to[r * columns + c] = E(to_float(from[r * stride + c]));
    }
  }
  std::fill(to + count * columns, to + rows * columns, E(0.0f));
}

// The B format summed over tokens, from contiguous rows: (rows / kPair, width, kPair), zeros in columns past `columns`.
template <class E>
void interleave_rows(const E* from, int64_t rows, int64_t columns, int64_t width, E* to) {
  constexpr int kP = kPair<E>;
  for (int64_t r = 0; r < rows; r += kP) {
    const E *first = from + r * columns, *second = from + (r + kP - 1) * columns;
    E* out = to + r * width;
    for (int64_t c = 0; c < columns; ++c) {
      out[c * kP] = first[c];
      out[c * kP + kP - 1] = second[c];
    }
    std::fill(out + columns * kP, out + width * kP, E(0.0f));
  }
}

// to[c][r] = from[r][c] in words of 4 bytes (a pair of bf16 is one word); rows is a multiple of kLanes.
inline void transpose_words(const void* from, int64_t from_stride, int64_t rows, int64_t columns, void* to,
                            int64_t to_stride) {
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  for (int64_t r = 0; r < rows; r += kLanes) {
    for (int64_t c = 0; c < columns; c += kLanes) {
      const auto taken = static_cast<int>(std::min<int64_t>(kLanes, columns - c));
      Vec words[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        const std::byte* row = source + 4 * ((r + i) * from_stride + c);
        if (taken == kLanes) {
          std::memcpy(&words[i], row, sizeof(Vec));
        } else {
          words[i] = Vec{};
          std::memcpy(&words[i], row, static_cast<size_t>(4 * taken));
        }
      }
      transpose(words);
      for (int i = 0; i < taken; ++i) std::memcpy(target + 4 * ((c + i) * to_stride + r), &words[i], sizeof(Vec));
    }
  }
}

// The B format summed over features, from contiguous rows: (columns / kPair, rows, kPair).
template <class E>
void features_to_b(const E* from, int64_t rows, int64_t columns, E* to) {
  transpose_words(from, columns / kPair<E>, rows, columns / kPair<E>, to, rows);
}

// The A format summed over tokens, from a B format summed over tokens: (columns, rows).
template <class E>
void b_to_a(const E* from, int64_t rows, int64_t columns, int64_t width, E* to) {
  // The words of the B format are (rows / kPair, width); rows / kPair need not be a multiple of kLanes.
  constexpr int kP = kPair<E>;
  const int64_t words = rows / kP, whole = words / kLanes * kLanes;
  transpose_words(from, width, whole, columns, to, words);
  for (int64_t r = whole; r < words; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      std::memcpy(to + (c * words + r) * kP, from + (r * width + c) * kP, sizeof(E) * kP);
    }
  }
}

// to[r][c] = factor[r] from[c][r] for r < count, rounded to T once. `from` is (columns, rows).
template <class T>
void write_transposed(const float* from, int64_t rows, int64_t columns, const float* factor, int64_t count, T* to,
                      int64_t to_stride) {
  for (int64_t r = 0; r < count; r += kLanes) {
    const Vec factors = load(factor + r);
    const auto valid = static_cast<int>(std::min<int64_t>(kLanes, count - r));
    for (int64_t c = 0; c < columns; c += kLanes) {
      const auto taken = static_cast<int>(std::min<int64_t>(kLanes, columns - c));
      Vec words[kLanes];
      for (int i = 0; i < kLanes; ++i) words[i] = i < taken ? load(from + (c + i) * rows + r) * factors : Vec{};
      transpose(words);
      for (int i = 0; i < valid; ++i) {
        T* out = to + (r + i) * to_stride + c;
        taken == kLanes ? store(out, words[i]) : store_part(out, taken, words[i]);
      }
    }
  }
}

}  // namespace tokamak::simd

// RMSNorm of one row, and its gradient. A row is a token (rmsnorm.cc), or one or all of its heads (qk_norm.cc).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/bf16.h"

namespace tokamak {

// The weight's gradient is a sum over all rows, computed over a fixed partition and added in order.
inline constexpr int64_t kMaxRowBlocks = 128;
inline constexpr int64_t kMinBlockRows = 16;
inline int64_t rows_per_block(int64_t rows) {
  return std::max(kMinBlockRows, (rows + kMaxRowBlocks - 1) / kMaxRowBlocks);
}

// Sums over wide rows are computed in blocks: a scalar f32 sum of 16384 terms loses two digits.
inline constexpr int64_t kSumBlock = 256;

template <class T>
float sum_of_squares(const T* x, int64_t width) {
  float total = 0;
  for (int64_t begin = 0; begin < width; begin += kSumBlock) {
    float piece = 0;
#pragma omp simd reduction(+ : piece)
    for (int64_t c = begin; c < std::min(width, begin + kSumBlock); ++c) {
      const float v = to_float(x[c]);
      piece += v * v;
    }
    total += piece;
  }
  return total;
}

template <class T>
float rstd_of(const T* x, int64_t width, float eps) {
  return 1.0f / std::sqrt(sum_of_squares(x, width) / static_cast<float>(width) + eps);
}

template <class T>
void scale(const T* x, const T* weight, float offset, float rstd, T* y, int64_t width) {
#pragma omp simd
  for (int64_t c = 0; c < width; ++c) y[c] = from_float<T>(to_float(x[c]) * rstd * (offset + to_float(weight[c])));
}

template <class T>
void scale_onto(const T* x, const T* weight, float offset, float rstd, const T* onto, T* y, int64_t width) {
#pragma omp simd
  for (int64_t c = 0; c < width; ++c) {
    y[c] = from_float<T>(to_float(x[c]) * rstd * (offset + to_float(weight[c])) + to_float(onto[c]));
  }
}

// The sum of dy * (offset + weight) * x over a row.
template <class T>
float projection(const T* dy, const T* x, const T* weight, float offset, int64_t width) {
  float total = 0;
  for (int64_t begin = 0; begin < width; begin += kSumBlock) {
    float piece = 0;
#pragma omp simd reduction(+ : piece)
    for (int64_t c = begin; c < std::min(width, begin + kSumBlock); ++c) {
      piece += to_float(dy[c]) * (offset + to_float(weight[c])) * to_float(x[c]);
    }
    total += piece;
  }
  return total;
}

template <class T>
struct BackwardRow {
  const T* dy;
  const T* x;
  const T* weight;
  const T* dresidual;  // or null
  T* dx;
  float* dweight;  // partial sums of this block of rows
  float rstd;
  float offset;
  T* y = nullptr;  // the recomputed normalised row; null: not wanted
};

template <class T>
void backward_row(const BackwardRow<T>& row, int64_t width) {
  const T *dy = row.dy, *x = row.x, *weight = row.weight, *dresidual = row.dresidual;
  T* dx = row.dx;
  float* dweight = row.dweight;
  const float rstd = row.rstd, offset = row.offset;
  const float along = projection(dy, x, weight, offset, width) * rstd * rstd / static_cast<float>(width);
  // dx may be dy or dresidual, y may be dy: each element is read before it is written.
  const auto element = [=](int64_t c, float past) {
    const float d = to_float(dy[c]), v = to_float(x[c]);
    dweight[c] += d * v * rstd;
    dx[c] = from_float<T>(rstd * (d * (offset + to_float(weight[c])) - v * along) + past);
  };
  if (dresidual != nullptr) {
#pragma omp simd
    for (int64_t c = 0; c < width; ++c) element(c, to_float(dresidual[c]));
  } else {
#pragma omp simd
    for (int64_t c = 0; c < width; ++c) element(c, 0.0f);
  }
  if (row.y != nullptr) scale(x, weight, offset, rstd, row.y, width);  // the row is in the cache
}

}  // namespace tokamak

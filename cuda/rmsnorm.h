// RMSNorm of the rows of a matrix, or of the heads inside its rows; qk_norm.cu uses it too.
#pragma once

#include <cmath>
#include <cstdint>

#include "cuda/check.h"

namespace tokamak {

// Rows of `width`: a token has `heads` consecutive rows, and tokens are `token` elements apart.
struct NormRows {
  int64_t count;  // rows of all tokens
  int64_t width;
  int64_t token;
  uint32_t heads = 1;

  __device__ int64_t at(int64_t row) const {
    const auto r = static_cast<uint32_t>(row), t = heads == 1 ? r : r / heads;
    return t * token + (r - t * heads) * width;
  }
};

// The fields are those of RmsNorm in ops.h.
template <class T>
struct NormForward {
  const T* x;
  const T* weight;
  T* y;         // may be x or onto: a thread reads its elements before it writes them
  float* rstd;  // (count)
  NormRows rows;
  float eps;
  const T* onto = nullptr;
  float offset = 0;

  __device__ float rstd_of(float squares) const {
    return 1.0f / std::sqrt(squares / static_cast<float>(rows.width) + eps);
  }
};

template <class T>
struct NormBackward {
  const T* dy;
  const T* x;
  const T* weight;
  const float* rstd;
  const T* dresidual;  // or null
  T* dx;               // may be dy or dresidual: a thread reads its elements before it writes them
  T* y = nullptr;      // the recomputed normalised rows; null: not wanted; may be dy
  float* parts;        // (blocks, width), norm_parts_bytes in all: the weight's gradient over the rows of each block
  NormRows rows;
  int64_t block_rows = 0;
  float offset = 0;
};

template <class T>
void rmsnorm_rows(cudaStream_t stream, const NormForward<T>& f);
template <class T>
void rmsnorm_backward_rows(cudaStream_t stream, NormBackward<T> b, float* dweight);  // accumulates dweight

int64_t norm_parts_bytes(int64_t rows, int64_t width);

// The second phase of a sum over rows: adds the parts, one per block, in a fixed order (column_sums.cu).
// sums[c] += parts[0][c] + parts[1][c] + ...                                                      parts (count, width)
void add_parts(cudaStream_t stream, const float* parts, int64_t count, int64_t width, float* sums);

}  // namespace tokamak

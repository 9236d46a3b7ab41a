// Building blocks of attention without tensor cores: f32 throughout, for f32 tensors and for bf16 of unusual head
// sizes. A block has kTile x kTile threads. Thread (row, column) computes one score of a tile. It also computes part
// of each sum of its row: the features `column`, `column + kTile` and so on. Everything lies in shared memory, which
// limits the number of features: about 600 in backward on Hopper, 430 on Ampere.
#pragma once

#include <cstdint>

#include "base/bf16.h"
#include "base/error.h"
#include "cuda/attention/problem.h"

namespace tokamak::flash {

inline constexpr int kTile = 16, kSquare = kTile * kTile;
inline constexpr size_t kMaxShared = 227 << 10;  // of a block on the largest GPU

// kTile rows of floats. D is even; the odd row stride spreads a column over the banks.
struct GenericTile {
  float* values;
  int dim;
  __device__ float* row(int r) const { return values + r * (dim + 1); }
};

// A block's shared memory: `tiles` of (kTile, D), then squares of kTile x kTile.
constexpr size_t shared_bytes(int tiles, int squares, int64_t dim) {
  return (static_cast<size_t>(tiles) * kTile * static_cast<size_t>(dim + 1) + static_cast<size_t>(squares * kSquare)) *
         sizeof(float);
}
inline void check_head_dim(size_t bytes, int64_t dim) {
  TOKAMAK_CHECK(bytes <= kMaxShared, "attention with head_dim ", dim, " needs ", bytes, " bytes of shared memory");
}

class SharedTiles {
 public:
  __device__ SharedTiles(unsigned char* memory, int dim) : at_(reinterpret_cast<float*>(memory)), dim_(dim) {}
  __device__ GenericTile tile() {
    float* const begin = at_;
    at_ += kTile * (dim_ + 1);
    return {begin, dim_};
  }
  __device__ float* square() {
    float* const begin = at_;
    at_ += kSquare;
    return begin;
  }

 private:
  float* at_;
  int dim_;
};

__device__ inline int square_row() { return static_cast<int>(threadIdx.x) / kTile; }
__device__ inline int square_column() { return static_cast<int>(threadIdx.x) % kTile; }

// Rows from `rows` on are zeros.
template <class T>
__device__ void fill_tile(const GenericTile& tile, const T* from, int64_t stride, int rows) {
  const int r = square_row();
  for (int i = square_column(); i < tile.dim; i += kTile) {
    tile.row(r)[i] = r < rows ? to_float(from[r * stride + i]) : 0.0f;
  }
}
__device__ inline void clear_tile(const GenericTile& tile) {
  for (int i = square_column(); i < tile.dim; i += kTile) tile.row(square_row())[i] = 0.0f;
}

// Dot product of this thread's row of one tile with row `column` of the other.
__device__ inline float score(const GenericTile& rows, const GenericTile& columns) {
  const float *x = rows.row(square_row()), *y = columns.row(square_column());
  float sum = 0;
  for (int i = 0; i < rows.dim; ++i) sum += x[i] * y[i];
  return sum;
}

// This thread's row of sums: sums = factor sums + weights tile, `weights` being the row of a square.
__device__ inline void add_weighted(const GenericTile& sums, float factor, const float* weights,
                                    const GenericTile& tile) {
  float* const to = sums.row(square_row());
  for (int i = square_column(); i < tile.dim; i += kTile) {
    float sum = to[i] * factor;
#pragma unroll
    for (int k = 0; k < kTile; ++k) sum += weights[k] * tile.row(k)[i];
    to[i] = sum;
  }
}

template <class T>
__device__ void write_row(const GenericTile& sums, float factor, T* to) {
  for (int i = square_column(); i < sums.dim; i += kTile) to[i] = from_float<T>(sums.row(square_row())[i] * factor);
}

}  // namespace tokamak::flash

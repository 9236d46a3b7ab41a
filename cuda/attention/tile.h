// Building blocks of flash attention on tensor cores. Tiles in shared memory are bf16. GEMMs multiply a warp's 16-row
// tiles and accumulate in f32 registers (mma.sync m16n8k16; layouts in ptx.h). Registers are scarce, so an address is a
// lane-dependent part plus a part that is constant once loops are unrolled.
#pragma once

#include <cstdint>

#include "base/bf16.h"
#include "cuda/attention/score_scale.h"
#include "cuda/ptx.h"
#include "cuda/reduce.h"

namespace tokamak::flash {

inline constexpr int kWarps = 4, kThreads = kWarps * kWarp;
inline constexpr float kLn2 = 0.693147180559945309f;

// kRows rows of kDim features, in panels of 64 features: one row of a panel spans all banks of shared memory. Its eight
// 16-byte chunks are permuted by the row number, chunk c lies at c ^ (row % 8). ldmatrix reads one chunk of 8
// consecutive rows, and so hits different banks.
template <int kDim, int kRows>
struct Tile {
  static constexpr int kPanel = 64, kChunk = 8;
  static_assert(kDim % kPanel == 0);

  bf16 elements[kDim * kRows];

  // Address of the chunk at (row + below, column + beyond); row is a multiple of 8, column of 16, beyond 0 or 8.
  __device__ static int at(int row, int below, int column, int beyond) {
    const int chunk = column % kPanel / kChunk ^ (beyond / kChunk ^ below % 8);
    return (column / kPanel * kRows + row) * kPanel + (below * kPanel + chunk * kChunk);
  }

  // Copies rows from global memory asynchronously; rows from `rows` on become zeros.
  __device__ void load(const bf16* from, int64_t stride, int rows) {
    constexpr int kChunks = kDim / kChunk, kRowsAtOnce = kThreads / kChunks;
    static_assert(kRows % kRowsAtOnce == 0 && kRowsAtOnce % 8 == 0);
    const int row = static_cast<int>(threadIdx.x) / kChunks, column = static_cast<int>(threadIdx.x) % kChunks * kChunk;
    bf16* const to = elements + at(0, row, column / 16 * 16, column % 16);
    from += row * stride + column;
#pragma unroll
    for (int i = 0; i < kRows; i += kRowsAtOnce) ptx::copy_async(to + i * kPanel, from + i * stride, row + i < rows);
  }

  // The 16 x 16 block at (row, column), as the A operand of mma.
  __device__ void load_a(uint32_t (&a)[4], int row, int column) const {
    ptx::load_matrices(a, elements + at(row, lane() % 16, column, lane() / 16 * 8));
  }
};

// Two B operands of mma side by side, 16 x 8 each: b[0..1] and b[2..3].
struct TwoB {
  uint32_t b[4];
  __device__ void multiply(float (&left)[4], float (&right)[4], const uint32_t (&a)[4]) const {
    const uint32_t first[2] = {b[0], b[1]}, second[2] = {b[2], b[3]};
    ptx::mma_bf16(left, a, first);
    ptx::mma_bf16(right, a, second);
  }
};

// The 16 x 16 block at (row, column) of a tile: as stored, or transposed.
template <int kDim, int kRows>
__device__ inline TwoB load_b(const Tile<kDim, kRows>& tile, int row, int column) {
  TwoB out;
  ptx::load_matrices_transposed(out.b, tile.elements + tile.at(row, lane() % 16, column, lane() / 16 * 8));
  return out;
}
template <int kDim, int kRows>
__device__ inline TwoB load_b_transposed(const Tile<kDim, kRows>& tile, int row, int column) {
  TwoB out;
  ptx::load_matrices(out.b, tile.elements + tile.at(row, lane() % 8 + lane() / 16 * 8, column, lane() / 8 % 2 * 8));
  return out;
}

// A warp's part of a matrix: 16 kRowTiles rows, kColumns columns.
template <int kRowTiles, int kColumns>
using Sums = float[kRowTiles][kColumns / 8][4];

// Row and column of accumulator element e, relative to its 16 x 8 block.
__device__ inline int row_of(int e) { return lane() / 4 + e / 2 * 8; }
__device__ inline int column_of(int e) { return lane() % 4 * 2 + e % 2; }

// Calls body(x, i, j, e) for every element of a warp's part: element e of block (i, j).
template <int kRowTiles, int kBlocks, class Body>
__device__ void for_each_indexed(float (&sums)[kRowTiles][kBlocks][4], const Body& body) {
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
    for (int j = 0; j < kBlocks; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) body(sums[i][j][e], i, j, e);
    }
  }
}
// Calls body(x, row, column) for every element of a warp's part.
template <int kRowTiles, int kBlocks, class Body>
__device__ void for_each(float (&sums)[kRowTiles][kBlocks][4], const Body& body) {
  for_each_indexed(sums, [&](float& x, int i, int j, int e) { body(x, 16 * i + row_of(e), 8 * j + column_of(e)); });
}

template <int kRowTiles, int kBlocks>
__device__ void set_zero(float (&sums)[kRowTiles][kBlocks][4]) {
  for_each_indexed(sums, [](float& x, int, int, int) { x = 0.0f; });
}

// sums += A tile^T, summed over features: load(i, k, fragment) loads A's rows from 16 i, features from 16 k; the tile's
// rows are the result's columns.
template <int kDim, int kRows, int kRowTiles, class LoadA>
__device__ void add_products_with_rows(float (&sums)[kRowTiles][kRows / 8][4], const LoadA& load,
                                       const Tile<kDim, kRows>& tile) {
#pragma unroll
  for (int k = 0; k < kDim / 16; ++k) {
    uint32_t a[kRowTiles][4];
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) load(i, k, a[i]);
#pragma unroll
    for (int j = 0; j < kRows / 8; j += 2) {
      const TwoB b = load_b_transposed(tile, 8 * j, 16 * k);
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) b.multiply(sums[i][j], sums[i][j + 1], a[i]);
    }
  }
}

// sums += W tile, with the weights W rounded to bf16: a row of weights has an element per row of the tile. Two
// accumulator blocks of weights have the register layout of an A operand.
template <int kDim, int kRows, int kRowTiles>
__device__ void add_weighted_rows(float (&sums)[kRowTiles][kDim / 8][4],
                                  const float (&weights)[kRowTiles][kRows / 8][4], const Tile<kDim, kRows>& tile) {
#pragma unroll
  for (int k = 0; k < kRows / 8; k += 2) {
    uint32_t a[kRowTiles][4];
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const float(&w)[4] = weights[i][k + r / 2];
        a[i][r] = ptx::pack_bf16(w[r % 2 * 2], w[r % 2 * 2 + 1]);
      }
    }
#pragma unroll
    for (int j = 0; j < kDim / 8; j += 2) {
      const TwoB b = load_b(tile, 8 * k, 8 * j);
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) b.multiply(sums[i][j], sums[i][j + 1], a[i]);
    }
  }
}

// Rounds a warp's rows and writes those below `rows`, starting at `to`.
template <int kRowTiles, int kBlocks>
__device__ void store_rows(const float (&sums)[kRowTiles][kBlocks][4], bf16* to, int64_t stride, int rows) {
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
    for (int e = 0; e < 4; e += 2) {
      const int row = 16 * i + row_of(e);
      if (row >= rows) continue;
#pragma unroll
      for (int j = 0; j < kBlocks; ++j) {
        *reinterpret_cast<uint32_t*>(to + row * stride + 8 * j + column_of(e)) =
            ptx::pack_bf16(sums[i][j][e], sums[i][j][e + 1]);
      }
    }
  }
}

}  // namespace tokamak::flash

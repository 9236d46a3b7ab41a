// Flash attention, forward, on tensor cores (Dao 2023). A block has 128 queries of one head, a warp 32 of them. Each
// fragment of keys or values from shared memory then serves two mma instructions; otherwise shared memory bandwidth,
// not the tensor cores, would be the limit. Over tiles of 64 keys, with c = scale log2(e):
//   S = Q K^T;  P = 2^(c S - m);  O = 2^(m_before - m) O + P V,  m the running maximum, P rounded to bf16.
// With a cap, c S is ScoreScale's.
// A tile's values load while its scores are computed, the next keys while its values are used.
#include "cuda/attention/native.h"
#include "cuda/attention/problem.h"
#include "cuda/attention/tile.h"
#include "cuda/launch.h"

namespace tokamak::flash {
namespace {

constexpr int kRowTiles = 2, kRows = 16 * kRowTiles;  // per warp
constexpr int kQueries = kRows * kWarps, kKeys = 64;  // per block, per tile
constexpr float kNoMaximum = -1e30f;                  // below any score, and finite: differences stay finite

// Combines the values of the four lanes that share a row of mma's accumulator.
template <class Combine>
__device__ float across_row(float x, const Combine& combine) {
  x = combine(x, __shfl_xor_sync(0xFFFFFFFFu, x, 1));
  return combine(x, __shfl_xor_sync(0xFFFFFFFFu, x, 2));
}

// Statistics of a warp's rows; `total` covers this lane's keys only.
struct Statistics {
  float maximum[kRowTiles][2], total[kRowTiles][2];
};

// Turns the scaled scores of a tile into weights, and rescales statistics and sums to the new maxima.
template <int kBlocks>
__device__ void softmax(float (&scores)[kRowTiles][kKeys / 8][4], Statistics& s, float (&out)[kRowTiles][kBlocks][4]) {
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float top = s.maximum[i][half];
#pragma unroll
      for (const auto& block : scores[i]) top = fmaxf(top, fmaxf(block[2 * half], block[2 * half + 1]));
      top = across_row(top, [](float a, float b) { return fmaxf(a, b); });
      const float shrink = ptx::exp2_approx(s.maximum[i][half] - top);
      s.maximum[i][half] = top;
      float total = s.total[i][half] * shrink;
#pragma unroll
      for (auto& block : scores[i]) {
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) total += block[e] = ptx::exp2_approx(block[e] - top);
      }
      s.total[i][half] = total;
#pragma unroll
      for (auto& block : out[i]) {
        block[2 * half] *= shrink;
        block[2 * half + 1] *= shrink;
      }
    }
  }
}

template <int kDim>
struct Shared {
  Tile<kDim, kQueries> queries;
  Tile<kDim, kKeys> keys, values;
};

template <int kDim, Cap kCap>
__global__ void __launch_bounds__(kThreads) forward(Problem<bf16> problem, bf16* out, float* lse) {
  TOKAMAK_SHARED_MEMORY(memory);
  auto& shared = *reinterpret_cast<Shared<kDim>*>(memory);

  const auto [head, slot] = block_place<true>(problem.q_heads);
  const Piece piece = piece_of<kQueries>(problem, slot);
  if (piece.empty()) return;
  const int64_t stride = problem.stride();
  const bf16* const document = problem.qkv + piece.begin * stride;
  const int first = piece.first + kRows * warp();  // this warp's first query
  const int first_key = problem.first_tile(piece.first, kKeys);
  const bf16* at = document + problem.key_at(head / problem.group()) + first_key * stride;
  const ScoreScale<kCap> scale(problem.scale, problem.cap);

  shared.queries.load(document + piece.first * stride + problem.query_at(head), stride, piece.length - piece.first);
  shared.keys.load(at, stride, piece.length - first_key);
  ptx::commit_copies();

  Sums<kRowTiles, kDim> sums;
  set_zero(sums);
  Statistics statistics;
#pragma unroll
  for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      statistics.maximum[i][half] = kNoMaximum;
      statistics.total[i][half] = 0.0f;
    }
  }

  const int end = min(piece.first + kQueries, piece.length);  // no query of the block attends to keys from here on
  for (int key = first_key; key < end; key += kKeys) {
    ptx::wait_for_copies<0>();
    __syncthreads();  // the keys have arrived, and no warp still reads values
    shared.values.load(at + problem.kv_width(), stride, piece.length - key);
    ptx::commit_copies();

    Sums<kRowTiles, kKeys> scores;
    set_zero(scores);
    add_products_with_rows(
        scores, [&](int i, int k, uint32_t(&a)[4]) { shared.queries.load_a(a, kRows * warp() + 16 * i, 16 * k); },
        shared.keys);
    for_each(scores, [&](float& x, int, int) { x = scale(x); });
    // Two masks, as one with Problem::hidden spills registers.
    if (key + kKeys > first + 1) {
      for_each(scores, [&](float& x, int row, int column) {
        if (key + column > first + row) x = -INFINITY;
      });
    }
    if (key <= first + kRows - 1 - problem.window) {
      for_each(scores, [&](float& x, int row, int column) {
        if (key + column <= first + row - problem.window) x = -INFINITY;
      });
    }
    softmax(scores, statistics, sums);

    ptx::wait_for_copies<0>();
    __syncthreads();  // the values have arrived, and no warp still reads keys
    if (key + kKeys < end) {
      at += kKeys * stride;
      shared.keys.load(at, stride, piece.length - key - kKeys);
      ptx::commit_copies();
    }
    add_weighted_rows(sums, scores, shared.values);
  }

#pragma unroll
  for (int i = 0; i < kRowTiles; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float total = across_row(statistics.total[i][half], [](float a, float b) { return a + b; });
      const int row = first + 16 * i + row_of(2 * half);
      if (lane() % 4 == 0 && row < piece.length) {
        lse[head * problem.tokens + piece.begin + row] = (statistics.maximum[i][half] + log2f(total)) * kLn2;
      }
      const float factor = 1.0f / total;
#pragma unroll
      for (auto& block : sums[i]) {
        block[2 * half] *= factor;
        block[2 * half + 1] *= factor;
      }
    }
  }
  store_rows(sums, out + (piece.begin + first) * problem.out_stride() + problem.query_at(head), problem.out_stride(),
             piece.length - first);
}

template <int kDim>
void launch_forward(cudaStream_t stream, const Attention& args) {
  const Problem<bf16> problem(args);
  launch({"attention", problem.grid(kQueries, problem.q_heads), kThreads, sizeof(Shared<kDim>)}, stream,
         args.cap > 0 ? forward<kDim, Cap::kYes> : forward<kDim, Cap::kNo>, problem, args.out.as<bf16>(),
         args.lse.as<float>());
}

}  // namespace

void forward_on_tensor_cores(cudaStream_t stream, const Attention& args) {
  args.heads.head_dim == 64 ? launch_forward<64>(stream, args) : launch_forward<128>(stream, args);
}

}  // namespace tokamak::flash

// Flash attention, forward, without tensor cores. A block has kTile queries of one head and loops over the keys up to
// them in tiles of kTile, with the running maximum and total of Dao et al. 2022.
#include "base/math.h"
#include "cuda/attention/generic.h"
#include "cuda/attention/native.h"
#include "cuda/launch.h"
#include "cuda/reduce.h"

namespace tokamak::flash {
namespace {

constexpr int kTiles = 4, kSquares = 1;  // in shared memory: Q, K, V, O and P
constexpr float kNoMaximum = -1e30f;     // below any score, and finite: differences stay finite

// Combines the values of the kTile threads of a row: half a warp.
template <class Combine>
__device__ float across_row(float x, const Combine& combine) {
#pragma unroll
  for (int offset = kTile / 2; offset > 0; offset /= 2) x = combine(x, __shfl_xor_sync(0xFFFFFFFFu, x, offset));
  return x;
}

template <class T>
__global__ void __launch_bounds__(kSquare, 4) forward(Problem<T> problem, T* out, float* lse) {
  TOKAMAK_SHARED_MEMORY(memory);
  SharedTiles shared(memory, problem.head_dim);
  const GenericTile queries = shared.tile(), keys = shared.tile(), values = shared.tile(), sums = shared.tile();
  float* const weights = shared.square() + square_row() * kTile;  // of this thread's row

  const auto [head, slot] = block_place<true>(problem.q_heads);
  const Piece piece = piece_of<kTile>(problem, slot);
  if (piece.empty()) return;
  const int64_t stride = problem.stride();
  const T* const document = problem.qkv + piece.begin * stride;
  fill_tile(queries, document + piece.first * stride + problem.query_at(head), stride, piece.length - piece.first);
  clear_tile(sums);

  const int query = piece.first + square_row();
  float maximum = kNoMaximum, total = 0;  // total: of this thread's keys
  for (int key = problem.first_tile(piece.first, kTile); key <= piece.first; key += kTile) {
    __syncthreads();  // no thread still reads the previous tiles
    const T* const row = document + key * stride;
    fill_tile(keys, row + problem.key_at(head / problem.group()), stride, piece.length - key);
    fill_tile(values, row + problem.value_at(head / problem.group()), stride, piece.length - key);
    __syncthreads();
    const int column = key + square_column();
    const bool seen = column <= query && column > query - problem.window;
    const float x = seen ? problem.score(score(queries, keys)) : -INFINITY;
    const float top = fmaxf(maximum, across_row(x, [](float a, float b) { return fmaxf(a, b); }));
    const float shrink = exp_f32(maximum - top), p = exp_f32(x - top);
    maximum = top;
    total = total * shrink + p;
    weights[square_column()] = p;
    __syncwarp();  // a row's threads are in one warp
    add_weighted(sums, shrink, weights, values);
  }

  total = across_row(total, [](float a, float b) { return a + b; });
  const float factor = 1.0f / total;
  if (query >= piece.length) return;
  const int64_t token = piece.begin + query;
  if (square_column() == 0) lse[head * problem.tokens + token] = maximum + logf(total);
  write_row(sums, factor, out + token * problem.out_stride() + problem.query_at(head));
}

}  // namespace

void forward_generic(cudaStream_t stream, const Attention& args) {
  const size_t bytes = shared_bytes(kTiles, kSquares, args.heads.head_dim);
  check_head_dim(bytes, args.heads.head_dim);
  with_act_type(args.qkv.dtype(), [&]<class T>(T) {
    const Problem<T> problem(args);
    launch({"attention_generic", problem.grid(kTile, problem.q_heads), kSquare, bytes}, stream, forward<T>, problem,
           args.out.as<T>(), args.lse.as<float>());
  });
}

}  // namespace tokamak::flash

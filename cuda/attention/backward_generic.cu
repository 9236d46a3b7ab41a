// Flash attention, backward, without tensor cores, in two kernels. A block of the first has kTile keys of one key-value
// head; it loops over the queries at and after them, one query head of the group after another. A block of the second
// has kTile queries of one head and loops over the keys up to them. So every sum has one writer and one order.
#include "base/math.h"
#include "cuda/attention/generic.h"
#include "cuda/attention/native.h"
#include "cuda/launch.h"

namespace tokamak::flash {
namespace {

constexpr int kDkvTiles = 6, kDkvSquares = 2;  // in shared memory: K, V, Q, dO, dK, dV and P^T, dS^T
constexpr int kDqTiles = 5, kDqSquares = 1;    // Q, dO, K, V, dQ and dS

template <class T>
struct Gradients {
  const T* dout;
  const float *lse, *delta;
};

template <class T>
__global__ void __launch_bounds__(kSquare) dkv(Problem<T> problem, Gradients<T> from, T* dqkv) {
  TOKAMAK_SHARED_MEMORY(memory);
  SharedTiles shared(memory, problem.head_dim);
  const GenericTile keys = shared.tile(), values = shared.tile(), queries = shared.tile(), dout = shared.tile(),
                    dkeys = shared.tile(), dvalues = shared.tile();
  // The row of this thread.
  float* const weights = shared.square() + square_row() * kTile;
  float* const dscores = shared.square() + square_row() * kTile;

  const auto [kv_head, slot] = block_place<false>(problem.kv_heads);
  const Piece piece = piece_of<kTile>(problem, slot);
  if (piece.empty()) return;
  const int64_t stride = problem.stride(), out_stride = problem.out_stride();
  const T* const document = problem.qkv + piece.begin * stride;
  const T* const row = document + piece.first * stride;
  fill_tile(keys, row + problem.key_at(kv_head), stride, piece.length - piece.first);
  fill_tile(values, row + problem.value_at(kv_head), stride, piece.length - piece.first);
  clear_tile(dkeys);
  clear_tile(dvalues);

  const int key = piece.first + square_row(), end = problem.end_of_queries(piece.first + kTile - 1, piece.length);
  for (int head = kv_head * problem.group(); head < (kv_head + 1) * problem.group(); ++head) {
    for (int first = piece.first; first < end; first += kTile) {
      __syncthreads();  // no thread still reads the previous tiles
      fill_tile(queries, document + first * stride + problem.query_at(head), stride, piece.length - first);
      fill_tile(dout, from.dout + (piece.begin + first) * out_stride + problem.query_at(head), out_stride,
                piece.length - first);
      __syncthreads();
      const int query = first + square_column();
      float p = 0, ds = 0;
      if (key <= query && key > query - problem.window && query < piece.length) {
        const int64_t at = head * problem.tokens + piece.begin + query;
        const float s = problem.score(score(keys, queries));
        p = exp_f32(s - from.lse[at]);
        ds = p * (score(values, dout) - from.delta[at]) * problem.slope(s);
      }
      weights[square_column()] = p;
      dscores[square_column()] = ds;
      __syncwarp();  // a row's threads are in one warp
      add_weighted(dvalues, 1.0f, weights, dout);
      add_weighted(dkeys, 1.0f, dscores, queries);
    }
  }

  if (key >= piece.length) return;
  T* const to = dqkv + (piece.begin + key) * stride;
  write_row(dkeys, problem.scale, to + problem.key_at(kv_head));
  write_row(dvalues, 1.0f, to + problem.value_at(kv_head));
}

template <class T>
__global__ void __launch_bounds__(kSquare) dq(Problem<T> problem, Gradients<T> from, T* dqkv) {
  TOKAMAK_SHARED_MEMORY(memory);
  SharedTiles shared(memory, problem.head_dim);
  const GenericTile queries = shared.tile(), dout = shared.tile(), keys = shared.tile(), values = shared.tile(),
                    dqueries = shared.tile();
  float* const dscores = shared.square() + square_row() * kTile;  // of this thread's row

  const auto [head, slot] = block_place<true>(problem.q_heads);
  const Piece piece = piece_of<kTile>(problem, slot);
  if (piece.empty()) return;
  const int64_t stride = problem.stride(), out_stride = problem.out_stride();
  const T* const document = problem.qkv + piece.begin * stride;
  const int query = piece.first + square_row(), count = piece.length - piece.first;
  const int64_t token = piece.begin + query;
  fill_tile(queries, document + piece.first * stride + problem.query_at(head), stride, count);
  fill_tile(dout, from.dout + (piece.begin + piece.first) * out_stride + problem.query_at(head), out_stride, count);
  clear_tile(dqueries);

  for (int first = problem.first_tile(piece.first, kTile); first <= piece.first; first += kTile) {
    __syncthreads();  // no thread still reads the previous tiles
    const T* const row = document + first * stride;
    fill_tile(keys, row + problem.key_at(head / problem.group()), stride, piece.length - first);
    fill_tile(values, row + problem.value_at(head / problem.group()), stride, piece.length - first);
    __syncthreads();
    float ds = 0;
    const int key = first + square_column();
    if (key <= query && key > query - problem.window && query < piece.length) {
      const int64_t at = head * problem.tokens + token;
      const float s = problem.score(score(queries, keys)), p = exp_f32(s - from.lse[at]);
      ds = p * (score(dout, values) - from.delta[at]) * problem.slope(s);
    }
    dscores[square_column()] = ds;
    __syncwarp();  // a row's threads are in one warp
    add_weighted(dqueries, 1.0f, dscores, keys);
  }

  if (query < piece.length) write_row(dqueries, problem.scale, dqkv + token * stride + problem.query_at(head));
}

}  // namespace

void backward_generic(cudaStream_t stream, const AttentionBackward& args, const float* delta) {
  const int64_t dim = args.heads.head_dim;
  const size_t dkv_bytes = shared_bytes(kDkvTiles, kDkvSquares, dim),
               dq_bytes = shared_bytes(kDqTiles, kDqSquares, dim);
  check_head_dim(dkv_bytes, dim);
  with_act_type(args.qkv.dtype(), [&]<class T>(T) {
    const Problem<T> problem(args);
    const Gradients<T> from{args.dout.as<T>(), args.lse.as<float>(), delta};
    launch({"attention_dkv_generic", problem.grid(kTile, problem.kv_heads), kSquare, dkv_bytes}, stream, dkv<T>,
           problem, from, args.dqkv.as<T>());
    launch({"attention_dq_generic", problem.grid(kTile, problem.q_heads), kSquare, dq_bytes}, stream, dq<T>, problem,
           from, args.dqkv.as<T>());
  });
}

}  // namespace tokamak::flash

// Flash attention, backward, on tensor cores: the gradients of keys and values. A block has a tile of keys of one
// key-value head. It loops over the queries at and after them, one query head of the group after another, so dK and dV
// have one writer and one order of summation. Scores are held transposed, a row per key, which leaves P^T and dS^T in
// the registers where the last two GEMMs need them. With c = scale log2(e):
//   P^T = 2^(c K Q^T - lse log2(e));  dV += P^T dO;  dS^T = P^T (V dO^T - delta);  dK += scale dS^T Q.
// With a cap, c K Q^T is ScoreScale's, and dS^T has its slope as a factor.
#include "cuda/attention/native.h"
#include "cuda/attention/problem.h"
#include "cuda/attention/tile.h"
#include "cuda/launch.h"

namespace tokamak::flash {
namespace {

// The registers hold the sums of 32 keys at 64 features, or of 16 keys at 128.
template <int kDim>
constexpr int kRowTiles = kDim == 64 ? 2 : 1;
template <int kDim>
constexpr int kRows = 16 * kRowTiles<kDim>;  // per warp
template <int kDim>
constexpr int kKeys = kRows<kDim>* kWarps;  // per block
// Per tile; a cap's slope needs registers, too.
template <Cap kCap>
constexpr int kQueries = kCap == Cap::kNo ? 32 : 16;

// Loaded asynchronously while the previous tile is used.
template <int kDim, Cap kCap>
struct Stage {
  Tile<kDim, kQueries<kCap>> queries, dout;
  float lse[kQueries<kCap>], delta[kQueries<kCap>];
};
template <int kDim, Cap kCap>
struct Shared {
  Tile<kDim, kKeys<kDim>> keys, values;
  Stage<kDim, kCap> stages[2];
};

struct Gradients {
  const bf16* dout;
  const float *lse, *delta;
};

template <int kDim, Cap kCap>
__device__ void load_stage(Stage<kDim, kCap>& stage, const Problem<bf16>& problem, const Gradients& from,
                           const Piece& piece, int head, int query) {
  const int64_t token = piece.begin + query;
  const int rows = piece.length - query;
  stage.queries.load(problem.qkv + token * problem.stride() + problem.query_at(head), problem.stride(), rows);
  stage.dout.load(from.dout + token * problem.out_stride() + problem.query_at(head), problem.out_stride(), rows);
  // Past the end P is 1, as scores and lse are 0, but it multiplies rows of zeros.
  if (const int row = static_cast<int>(threadIdx.x); row < kQueries<kCap>) {
    const int64_t at = head * problem.tokens + token + (row < rows ? row : 0);
    ptx::copy_word_async(stage.lse + row, from.lse + at, row < rows);
    ptx::copy_word_async(stage.delta + row, from.delta + at, row < rows);
  }
}

// A tile's contribution to this warp's sums. `ahead`: the index of the warp's first key minus that of the tile's first
// query.
template <int kDim, Cap kCap>
__device__ void add_tile(float (&dkeys)[kRowTiles<kDim>][kDim / 8][4], float (&dvalues)[kRowTiles<kDim>][kDim / 8][4],
                         const Shared<kDim, kCap>& shared, const Stage<kDim, kCap>& stage,
                         const ScoreScale<kCap>& scale, int ahead, int window) {
  const auto rows_of = [](const Tile<kDim, kKeys<kDim>>& tile) {
    return [&tile](int i, int k, uint32_t(&a)[4]) { tile.load_a(a, kRows<kDim> * warp() + 16 * i, 16 * k); };
  };
  Sums<kRowTiles<kDim>, kQueries<kCap>> weights, dscores;
  set_zero(weights);
  add_products_with_rows(weights, rows_of(shared.keys), stage.queries);
  const auto weight = [&](float score, int column) { return ptx::exp2_approx(score - stage.lse[column] * kLog2E); };
  const auto dscore = [&](float p, float dp, int column) { return p * (dp - stage.delta[column]); };
  const bool hides = 1 < ahead + kRows<kDim> || ahead <= kQueries<kCap> - 1 - window;
  const auto hidden = [&](int row, int column) { return Problem<bf16>::hidden(column - row - ahead, window); };
  if constexpr (kCap == Cap::kNo) {
    for_each(weights, [&](float& x, int, int column) { x = weight(scale(x), column); });
    if (hides) {
      for_each(weights, [&](float& x, int row, int column) {
        if (hidden(row, column)) x = 0.0f;
      });
    }
    add_weighted_rows(dvalues, weights, stage.dout);
    set_zero(dscores);
    add_products_with_rows(dscores, rows_of(shared.values), stage.dout);
    for_each_indexed(dscores,
                     [&](float& x, int i, int j, int e) { x = dscore(weights[i][j][e], x, 8 * j + column_of(e)); });
  } else {
    // Scores, weights and both gradients of an element at once: the slope needs no registers of its own.
    set_zero(dscores);
    add_products_with_rows(dscores, rows_of(shared.values), stage.dout);
    for_each_indexed(dscores, [&](float& x, int i, int j, int e) {
      const int row = 16 * i + row_of(e), column = 8 * j + column_of(e);
      const float score = scale(weights[i][j][e]), p = hides && hidden(row, column) ? 0.0f : weight(score, column);
      weights[i][j][e] = p;
      x = dscore(p, x, column) * scale.slope(score);
    });
    add_weighted_rows(dvalues, weights, stage.dout);
  }
  add_weighted_rows(dkeys, dscores, stage.queries);
}

template <int kDim, Cap kCap>
__global__ void __launch_bounds__(kThreads) dkv(Problem<bf16> problem, Gradients from, bf16* dqkv) {
  TOKAMAK_SHARED_MEMORY(memory);
  auto& shared = *reinterpret_cast<Shared<kDim, kCap>*>(memory);

  const auto [kv_head, slot] = block_place<false>(problem.kv_heads);
  const Piece piece = piece_of<kKeys<kDim>>(problem, slot);
  if (piece.empty()) return;
  const int64_t stride = problem.stride();
  const bf16* const row = problem.qkv + (piece.begin + piece.first) * stride;
  shared.keys.load(row + problem.key_at(kv_head), stride, piece.length - piece.first);
  shared.values.load(row + problem.value_at(kv_head), stride, piece.length - piece.first);

  // Step i is tile i % tiles of the i / tiles-th query head of the group.
  const int end = problem.end_of_queries(piece.first + kKeys<kDim> - 1, piece.length);
  const int tiles = (end - piece.first + kQueries<kCap> - 1) / kQueries<kCap>, steps = tiles * problem.group();
  const auto query_of = [&](int step) { return piece.first + step % tiles * kQueries<kCap>; };
  const auto start = [&](int step) {
    load_stage(shared.stages[step % 2], problem, from, piece, kv_head * problem.group() + step / tiles, query_of(step));
    ptx::commit_copies();
  };
  start(0);

  const int first = piece.first + kRows<kDim> * warp();  // this warp's first key
  Sums<kRowTiles<kDim>, kDim> dkeys, dvalues;
  set_zero(dkeys);
  set_zero(dvalues);
  for (int step = 0; step < steps; ++step) {
    ptx::wait_for_copies<0>();
    __syncthreads();  // this tile has arrived, and no warp still reads the previous one
    if (step + 1 < steps) start(step + 1);
    const int ahead = first - query_of(step);
    if (ahead >= kQueries<kCap>) continue;  // all of the tile's queries come before this warp's keys
    add_tile(dkeys, dvalues, shared, shared.stages[step % 2], ScoreScale<kCap>(problem.scale, problem.cap), ahead,
             problem.window);
  }

  for_each(dkeys, [&](float& x, int, int) { x *= problem.scale; });
  bf16* const to = dqkv + (piece.begin + first) * stride;
  store_rows(dkeys, to + problem.key_at(kv_head), stride, piece.length - first);
  store_rows(dvalues, to + problem.value_at(kv_head), stride, piece.length - first);
}

template <int kDim, Cap kCap>
void launch_dkv(cudaStream_t stream, const AttentionBackward& args, const float* delta) {
  const Problem<bf16> problem(args);
  launch({"attention_dkv", problem.grid(kKeys<kDim>, problem.kv_heads), kThreads, sizeof(Shared<kDim, kCap>)}, stream,
         dkv<kDim, kCap>, problem, {args.dout.as<bf16>(), args.lse.as<float>(), delta}, args.dqkv.as<bf16>());
}

template <int kDim>
void launch_dkv(cudaStream_t stream, const AttentionBackward& args, const float* delta) {
  args.cap > 0 ? launch_dkv<kDim, Cap::kYes>(stream, args, delta) : launch_dkv<kDim, Cap::kNo>(stream, args, delta);
}

}  // namespace

void dkv_on_tensor_cores(cudaStream_t stream, const AttentionBackward& args, const float* delta) {
  args.heads.head_dim == 64 ? launch_dkv<64>(stream, args, delta) : launch_dkv<128>(stream, args, delta);
}

}  // namespace tokamak::flash

// Flash attention, backward, on tensor cores: the gradients of keys and values. A block has a tile of keys of one
// key-value head. It loops over the queries at and after them, one query head of the group after another, so dK and dV
// have one writer and one order of summation. Scores are held transposed, a row per key, which leaves P^T and dS^T in
// the registers where the last two GEMMs need them. With c = scale log2(e):
//   P^T = 2^(c K Q^T - lse log2(e));  dV += P^T dO;  dS^T = P^T (V dO^T - delta);  dK += scale dS^T Q.
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
constexpr int kQueries = 32;                // per tile

// Loaded asynchronously while the previous tile is used.
template <int kDim>
struct Stage {
  Tile<kDim, kQueries> queries, dout;
  float lse[kQueries], delta[kQueries];
};
template <int kDim>
struct Shared {
  Tile<kDim, kKeys<kDim>> keys, values;
  Stage<kDim> stages[2];
};

struct Gradients {
  const bf16* dout;
  const float *lse, *delta;
};

template <int kDim>
__device__ void load_stage(Stage<kDim>& stage, const Problem<bf16>& problem, const Gradients& from, const Piece& piece,
                           int head, int query) {
  const int64_t token = piece.begin + query;
  const int rows = piece.length - query;
  stage.queries.load(problem.qkv + token * problem.stride() + problem.query_at(head), problem.stride(), rows);
  stage.dout.load(from.dout + token * problem.out_stride() + problem.query_at(head), problem.out_stride(), rows);
  // Past the end P is 1, as scores and lse are 0, but it multiplies rows of zeros.
  if (const int row = static_cast<int>(threadIdx.x); row < kQueries) {
    const int64_t at = head * problem.tokens + token + (row < rows ? row : 0);
    ptx::copy_word_async(stage.lse + row, from.lse + at, row < rows);
    ptx::copy_word_async(stage.delta + row, from.delta + at, row < rows);
  }
}

// A tile's contribution to this warp's sums. `ahead`: the index of the warp's first key minus that of the tile's first
// query.
template <int kDim>
__device__ void add_tile(float (&dkeys)[kRowTiles<kDim>][kDim / 8][4], float (&dvalues)[kRowTiles<kDim>][kDim / 8][4],
                         const Shared<kDim>& shared, const Stage<kDim>& stage, float scale, int ahead, int window) {
  const auto rows_of = [](const Tile<kDim, kKeys<kDim>>& tile) {
    return [&tile](int i, int k, uint32_t(&a)[4]) { tile.load_a(a, kRows<kDim> * warp() + 16 * i, 16 * k); };
  };
  Sums<kRowTiles<kDim>, kQueries> weights, dscores;
  set_zero(weights);
  add_products_with_rows(weights, rows_of(shared.keys), stage.queries);
  for_each(weights, [&](float& x, int, int column) { x = ptx::exp2_approx(x * scale - stage.lse[column] * kLog2E); });
  if (ahead + kRows < kDim >> 1 || ahead <= kQueries - 1 - window) {
    for_each(weights, [&](float& x, int row, int column) {
      if (Problem<bf16>::hidden(column - row - ahead, window)) x = 0.0f;
    });
  }
  add_weighted_rows(dvalues, weights, stage.dout);
  set_zero(dscores);
  add_products_with_rows(dscores, rows_of(shared.values), stage.dout);
  for_each_indexed(
      dscores, [&](float& x, int i, int j, int e) { x = weights[i][j][e] * (x - stage.delta[8 * j + column_of(e)]); });
  add_weighted_rows(dkeys, dscores, stage.queries);
}

template <int kDim>
__global__ void __launch_bounds__(kThreads) dkv(Problem<bf16> problem, Gradients from, bf16* dqkv) {
  TOKAMAK_SHARED_MEMORY(memory);
  auto& shared = *reinterpret_cast<Shared<kDim>*>(memory);

  const auto [kv_head, slot] = block_place<false>(problem.kv_heads);
  const Piece piece = piece_of<kKeys<kDim>>(problem, slot);
  if (piece.empty()) return;
  const int64_t stride = problem.stride();
  const bf16* const row = problem.qkv + (piece.begin + piece.first) * stride;
  shared.keys.load(row + problem.key_at(kv_head), stride, piece.length - piece.first);
  shared.values.load(row + problem.value_at(kv_head), stride, piece.length - piece.first);

  // Step i is tile i % tiles of the i / tiles-th query head of the group.
  const int end = problem.end_of_queries(piece.first + kKeys<kDim> - 1, piece.length);
  const int tiles = (end - piece.first + kQueries - 1) / kQueries, steps = tiles * problem.group();
  const auto query_of = [&](int step) { return piece.first + step % tiles * kQueries; };
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
    if (ahead >= kQueries) continue;  // all of the tile's queries come before this warp's keys
    add_tile(dkeys, dvalues, shared, shared.stages[step % 2], problem.scale * kLog2E, ahead, problem.window);
  }

  for_each(dkeys, [&](float& x, int, int) { x *= problem.scale; });
  bf16* const to = dqkv + (piece.begin + first) * stride;
  store_rows(dkeys, to + problem.key_at(kv_head), stride, piece.length - first);
  store_rows(dvalues, to + problem.value_at(kv_head), stride, piece.length - first);
}

template <int kDim>
void launch_dkv(cudaStream_t stream, const AttentionBackward& args, const float* delta) {
  const Problem<bf16> problem(args);
  launch({"attention_dkv", problem.grid(kKeys<kDim>, problem.kv_heads), kThreads, sizeof(Shared<kDim>)}, stream,
         dkv<kDim>, problem, {args.dout.as<bf16>(), args.lse.as<float>(), delta}, args.dqkv.as<bf16>());
}

}  // namespace

void dkv_on_tensor_cores(cudaStream_t stream, const AttentionBackward& args, const float* delta) {
  args.heads.head_dim == 64 ? launch_dkv<64>(stream, args, delta) : launch_dkv<128>(stream, args, delta);
}

}  // namespace tokamak::flash

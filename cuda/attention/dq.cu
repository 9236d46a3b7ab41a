// Flash attention, backward, on tensor cores: the gradient of queries. A block has a tile of queries of one head. A
// warp keeps its queries and their rows of dO in registers and loops over the keys up to them. With c = scale log2(e):
//   P = 2^(c Q K^T - lse log2(e));  dS = P (dO V^T - delta);  dQ += scale dS K.
// With a cap, c Q K^T is ScoreScale's, and dS has its slope as a factor.
#include "cuda/attention/native.h"
#include "cuda/attention/problem.h"
#include "cuda/attention/tile.h"
#include "cuda/launch.h"

namespace tokamak::flash {
namespace {

// The registers hold queries, dO and sums of 32 rows at 64 features, or of 16 rows at 128.
template <int kDim>
constexpr int kRowTiles = kDim == 64 ? 2 : 1;
template <int kDim>
constexpr int kRows = 16 * kRowTiles<kDim>;  // per warp
template <int kDim>
constexpr int kQueries = kRows<kDim>* kWarps;  // per block
constexpr int kKeys = 32;                      // per tile

template <int kDim>
struct Stage {
  Tile<kDim, kKeys> keys, values;
};
template <int kDim>
union Shared {
  struct {
    Tile<kDim, kQueries<kDim>> queries, dout;
  } before;  // used until they are in registers
  Stage<kDim> stages[2];
};

// A warp's rows as the A operand of mma, and their statistics.
template <int kDim>
struct Rows {
  uint32_t queries[kRowTiles<kDim>][kDim / 16][4], dout[kRowTiles<kDim>][kDim / 16][4];
  float lse[kRowTiles<kDim>][2], delta[kRowTiles<kDim>][2];  // lse log2(e)
};

struct Gradients {
  const bf16* dout;
  const float *lse, *delta;
};

// Through shared memory, which may be reused afterwards.
template <int kDim>
__device__ void load_rows(Rows<kDim>& rows, Shared<kDim>& shared, const Problem<bf16>& problem, const Gradients& from,
                          const Piece& piece, int head) {
  const int64_t token = piece.begin + piece.first;
  const int count = piece.length - piece.first;
  shared.before.queries.load(problem.qkv + token * problem.stride() + problem.query_at(head), problem.stride(), count);
  shared.before.dout.load(from.dout + token * problem.out_stride() + problem.query_at(head), problem.out_stride(),
                          count);
  ptx::commit_copies();
  const int first = kRows<kDim> * warp();
#pragma unroll
  for (int i = 0; i < kRowTiles<kDim>; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first + 16 * i + row_of(2 * half);
      const int64_t at = head * problem.tokens + token + row;
      rows.lse[i][half] = row < count ? from.lse[at] * kLog2E : 0.0f;
      rows.delta[i][half] = row < count ? from.delta[at] : 0.0f;
    }
  }
  ptx::wait_for_copies<0>();
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kRowTiles<kDim>; ++i) {
#pragma unroll
    for (int k = 0; k < kDim / 16; ++k) {
      shared.before.queries.load_a(rows.queries[i][k], first + 16 * i, 16 * k);
      shared.before.dout.load_a(rows.dout[i][k], first + 16 * i, 16 * k);
    }
  }
  __syncthreads();
}

// A tile's contribution to this warp's sums. `ahead`: the index of the tile's first key minus that of the warp's first
// query.
template <int kDim, Cap kCap>
__device__ void add_tile(float (&dqueries)[kRowTiles<kDim>][kDim / 8][4], const Rows<kDim>& rows,
                         const Stage<kDim>& stage, const ScoreScale<kCap>& scale, int ahead, int window) {
  const auto fragments = [](const auto& all) {
    return [&all](int i, int k, uint32_t(&a)[4]) {
#pragma unroll
      for (int r = 0; r < 4; ++r) a[r] = all[i][k][r];
    };
  };
  Sums<kRowTiles<kDim>, kKeys> weights, dscores;
  set_zero(weights);
  add_products_with_rows(weights, fragments(rows.queries), stage.keys);
  for_each_indexed(weights, [&](float& x, int i, int, int e) {
    const float score = scale(x);
    x = ptx::exp2_approx(score - rows.lse[i][e / 2]);
    if constexpr (kCap == Cap::kYes) x *= scale.slope(score);
  });
  if (ahead + kKeys > 1 || ahead <= kRows<kDim> - 1 - window) {
    for_each(weights, [&](float& x, int row, int column) {
      if (Problem<bf16>::hidden(row - column - ahead, window)) x = 0.0f;
    });
  }
  // Starts the sum at -delta: saves one instruction per score.
  for_each_indexed(dscores, [&](float& x, int i, int, int e) { x = -rows.delta[i][e / 2]; });
  add_products_with_rows(dscores, fragments(rows.dout), stage.values);
  for_each_indexed(dscores, [&](float& x, int i, int j, int e) { x *= weights[i][j][e]; });
  add_weighted_rows(dqueries, dscores, stage.keys);
}

template <int kDim, Cap kCap>
__global__ void __launch_bounds__(kThreads) dq(Problem<bf16> problem, Gradients from, bf16* dqkv) {
  TOKAMAK_SHARED_MEMORY(memory);
  auto& shared = *reinterpret_cast<Shared<kDim>*>(memory);

  const auto [head, slot] = block_place<true>(problem.q_heads);
  const Piece piece = piece_of<kQueries<kDim>>(problem, slot);
  if (piece.empty()) return;
  const int64_t stride = problem.stride();
  const int first_key = problem.first_tile(piece.first, kKeys);
  const bf16* keys = problem.qkv + (piece.begin + first_key) * stride + problem.key_at(head / problem.group());
  Rows<kDim> rows;
  load_rows(rows, shared, problem, from, piece, head);

  const int end =
      min(piece.first + kQueries<kDim>, piece.length);  // no query of the block attends to keys from here on
  const auto start = [&](int key) {
    Stage<kDim>& stage = shared.stages[key / kKeys % 2];
    stage.keys.load(keys, stride, piece.length - key);
    stage.values.load(keys + problem.kv_width(), stride, piece.length - key);
    keys += kKeys * stride;
    ptx::commit_copies();
  };
  start(first_key);

  const int first = piece.first + kRows<kDim> * warp();  // this warp's first query
  Sums<kRowTiles<kDim>, kDim> dqueries;
  set_zero(dqueries);
  for (int key = first_key; key < end; key += kKeys) {
    ptx::wait_for_copies<0>();
    __syncthreads();  // this tile has arrived, and no warp still reads the previous one
    if (key + kKeys < end) start(key + kKeys);
    if (key >= first + kRows<kDim>) continue;  // all of the tile's keys come after this warp's queries
    add_tile(dqueries, rows, shared.stages[key / kKeys % 2], ScoreScale<kCap>(problem.scale, problem.cap), key - first,
             problem.window);
  }

  for_each(dqueries, [&](float& x, int, int) { x *= problem.scale; });
  store_rows(dqueries, dqkv + (piece.begin + first) * stride + problem.query_at(head), stride, piece.length - first);
}

template <int kDim>
void launch_dq(cudaStream_t stream, const AttentionBackward& args, const float* delta) {
  const Problem<bf16> problem(args);
  launch({"attention_dq", problem.grid(kQueries<kDim>, problem.q_heads), kThreads, sizeof(Shared<kDim>)}, stream,
         args.cap > 0 ? dq<kDim, Cap::kYes> : dq<kDim, Cap::kNo>, problem,
         {args.dout.as<bf16>(), args.lse.as<float>(), delta}, args.dqkv.as<bf16>());
}

}  // namespace

void dq_on_tensor_cores(cudaStream_t stream, const AttentionBackward& args, const float* delta) {
  args.heads.head_dim == 64 ? launch_dq<64>(stream, args, delta) : launch_dq<128>(stream, args, delta);
}

}  // namespace tokamak::flash

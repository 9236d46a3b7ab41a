// Attention, forward: flash attention (Dao et al. 2022) on tiles of 64 queries and 64 keys. Scores are held transposed,
// S^T[s][t], so that all of a query's statistics lie in one lane and softmax needs no sums across lanes:
//   S^T = K Q^T;  P^T = 2^(c S^T - m);  O^T += V^T P^T,  c = scale log2(e), m the running maximum over keys.
// With a cap, S^T is capped in place, and c is 1.
// In bf16, P is rounded to bf16 before its GEMM; the row sums of P are not.
#pragma once

#include <cmath>

#include "backend/cpu/attention_tasks.h"
#include "backend/cpu/pack.h"

namespace tokamak::flash {

using namespace simd;

inline constexpr int64_t kBlock = kAttentionBlock;
inline constexpr float kNoMaximum = -1e30f;  // below any score, and finite: differences stay finite

template <class E>
struct ForwardMemory {
  E* rows;                          // (kBlock, D)
  E* interleaved;                   // (kBlock, Dn): B format
  E* keys;                          // (T, D): A format
  E* values;                        // blocks of (D, kBlock): A format of V^T
  E* queries;                       // (D, kBlock): B format
  E* p;                             // (kBlock, kBlock): P^T in B format
  float* scores;                    // (kBlock, kBlock): S^T
  float* out;                       // (D, kBlock): O^T
  float *maximum, *total, *factor;  // (kBlock)
  int64_t bytes;

  ForwardMemory(std::byte* memory, int64_t length, int64_t dim) {
    const int64_t padded = round_up(length, kBlock);
    Carver carver(memory);
    rows = carver.take<E>(kBlock * dim);
    interleaved = carver.take<E>(kBlock * round_up(dim, kLanes));
    keys = carver.take<E>(padded * dim);
    values = carver.take<E>(padded * dim);
    queries = carver.take<E>(dim * kBlock);
    p = carver.take<E>(kBlock * kBlock);
    scores = carver.take<float>(kBlock * kBlock);
    out = carver.take<float>(dim * kBlock);
    maximum = carver.take<float>(kBlock);
    total = carver.take<float>(kBlock);
    factor = carver.take<float>(kBlock);
    bytes = carver.used();
  }
};

// One tile of the online softmax. Leaves P^T in p, updates the statistics, and rescales O^T if the maximum grew. A
// query may see no key of a tile: its maximum and its sums then stay as they are.
struct SoftmaxTile {
  TileMask mask;  // queries: a multiple of kLanes
  int64_t dim;
  float scale;  // c
};

// Queries j to j + kLanes of a tile.
template <TileMask::Hides kHides, class E>
void softmax_lanes(const SoftmaxTile& tile, int64_t j, const ForwardMemory<E>& m) {
  const TileMask& mask = tile.mask;
  const int64_t n = mask.queries, ahead = mask.first_query + j - mask.first_key;
  const SeenKeys<kHides> seen(ahead, mask);
  const int64_t keys = seen.end();
  const Vec before = load(m.maximum + j);
  Vec tops[4] = {before, before, before, before};  // four chains of comparisons hide their latency
  for (int64_t s = 0; s < keys; ++s) {
    const Vec x = load(m.scores + s * n + j) * tile.scale;
    tops[s % 4] = maximum(tops[s % 4], seen.pick(s, x, before));
  }
  const Vec top = maximum(maximum(tops[0], tops[1]), maximum(tops[2], tops[3]));
  const auto weight = [&](int64_t s) {
    return seen.pick(s, exp2(load(m.scores + s * n + j) * tile.scale - top), Vec{});
  };
  const Vec shrink = exp2(before - top);
  Vec total = load(m.total + j) * shrink;
  for (int64_t s = 0; s < mask.keys; s += 2) {
    const Vec even = s < keys ? weight(s) : Vec{}, odd = s + 1 < keys ? weight(s + 1) : Vec{};
    total += even;
    total += odd;
    store_b(m.p + s * n + j * kPair<E>, n, even, odd);
  }
  store(m.maximum + j, top);
  store(m.total + j, total);
  for (int64_t i = 0; i < tile.dim; ++i) store(m.out + i * n + j, load(m.out + i * n + j) * shrink);
}

template <class E>
void softmax(const SoftmaxTile& tile, const ForwardMemory<E>& m) {
  with_mask(tile.mask.hides(), [&](auto hides) {
    for (int64_t j = 0; j < tile.mask.queries; j += kLanes) softmax_lanes<hides.value>(tile, j, m);
  });
}

// The keys and values of one head, a row per token.
template <class T>
struct KeysAndValues {
  const T *keys, *values;
  int64_t stride;  // elements between tokens
  int64_t count;
  // Token s lies in row (first + s) mod ring. Both are multiples of kBlock, or `ring` exceeds first + count.
  int64_t first = 0, ring = INT64_MAX;
};

// Consecutive queries of one head: query t attends to keys 0 .. first + t, or the last `window` of them.
template <class T>
struct Queries {
  const T* rows;
  int64_t stride, count;
  int64_t first;  // position of the first query
  T* out;
  int64_t out_stride;
  float* lse;  // (count), or null
  int64_t window;
};

template <class T>
void pack_keys(const KeysAndValues<T>& kv, int64_t dim, const ForwardMemory<TileElement<T>>& m) {
  for (int64_t s = 0; s < kv.count; s += kBlock) {
    const int64_t at = (kv.first + s) % kv.ring * kv.stride, rows = std::min(kBlock, kv.count - s);
    copy_rows(kv.keys + at, kv.stride, rows, rows, dim, m.keys + s * dim);
    copy_rows(kv.values + at, kv.stride, rows, kBlock, dim, m.rows);
    interleave_rows(m.rows, kBlock, dim, round_up(dim, kLanes), m.interleaved);
    b_to_a(m.interleaved, kBlock, dim, round_up(dim, kLanes), m.values + s * dim);
  }
}

// Queries t to t + kBlock against the packed keys.
template <class T>
void query_block(const Queries<T>& q, int64_t t, int64_t all_keys, int64_t dim, const ScoreScale& scale,
                 const ForwardMemory<TileElement<T>>& m) {
  using E = TileElement<T>;
  const int64_t count = std::min(kBlock, q.count - t), n = round_up(count, kLanes), first = q.first + t;
  copy_rows(q.rows + t * q.stride, q.stride, count, n, dim, m.rows);
  features_to_b(m.rows, n, dim, m.queries);
  std::fill(m.maximum, m.maximum + n, kNoMaximum);
  std::fill(m.total, m.total + n, 0.0f);
  std::fill(m.out, m.out + dim * n, 0.0f);
  for (int64_t s = TileMask::first_tile(first, q.window); s < first + count; s += kBlock) {
    const int64_t keys = std::min(kBlock, all_keys - s);
    multiply<E>({.a = m.keys + s * dim, .a_stride = dim, .b = m.queries, .c = m.scores, .m = keys, .n = n, .k = dim});
    scale.cap(m.scores, keys * n);
    softmax(SoftmaxTile{{first, n, s, keys, q.window}, dim, scale.factor()}, m);
    multiply<E>({.a = m.values + s * dim,
                 .a_stride = kBlock,
                 .b = m.p,
                 .c = m.out,
                 .m = dim,
                 .n = n,
                 .k = round_up(keys, 2),
                 .start = Start::kOutput});
  }
  for (int64_t j = 0; j < n; ++j) m.factor[j] = 1.0f / m.total[j];
  write_transposed(m.out, n, dim, m.factor, count, q.out + t * q.out_stride, q.out_stride);
  if (q.lse == nullptr) return;
  for (int64_t j = 0; j < count; ++j) q.lse[t + j] = (m.maximum[j] + std::log2(m.total[j])) * kLn2;
}

template <class T>
void attend(const Queries<T>& q, int64_t all_keys, int64_t dim, const ScoreScale& scale,
            const ForwardMemory<TileElement<T>>& m) {
  for (int64_t t = 0; t < q.count; t += kBlock) query_block(q, t, all_keys, dim, scale, m);
}

template <class T>
int64_t worker_bytes(int64_t length, int64_t dim) {
  return ForwardMemory<TileElement<T>>(nullptr, length, dim).bytes;
}

}  // namespace tokamak::flash

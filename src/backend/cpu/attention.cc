// Attention, forward: flash attention (Dao et al. 2022) on tiles of 64 queries and 64 keys. Scores are held transposed,
// S^T[s][t], so that all of a query's statistics lie in one lane and softmax needs no sums across lanes:
//   S^T = K Q^T;  P^T = 2^(c S^T - m);  O^T += V^T P^T,  c = scale log2(e), m the running maximum over keys.
// In bf16, P enters its product rounded to bf16; its sums do not.
#include <cmath>

#include "backend/cpu/attention_tasks.h"
#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/pack.h"
#include "backend/cpu/partition.h"

namespace tokamak {
namespace {

using namespace simd;

constexpr int64_t kBlock = kAttentionBlock;
constexpr float kNoMaximum = -1e30f;  // below any score, and finite: differences stay finite

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

// One tile of the online softmax: scores of `keys` keys, the first of them number `first_key`, for queries from
// `first_query` on. Leaves P^T in p, updates the statistics, and rescales O^T where the maximum grew.
struct SoftmaxTile {
  int64_t first_query, first_key;
  int64_t queries, keys;  // queries: a multiple of kLanes
  int64_t dim;
  float scale;  // c
};

// Queries j to j + kLanes of a tile; `kDiagonal`: some keys come after some of these queries.
template <bool kDiagonal, class E>
void softmax_lanes(const SoftmaxTile& tile, int64_t j, const ForwardMemory<E>& m) {
  const int64_t n = tile.queries;
  const Ints query = lane_numbers() + static_cast<int32_t>(tile.first_query + j - tile.first_key);
  const int64_t keys = kDiagonal ? std::min(tile.keys, tile.first_query + j + kLanes - tile.first_key) : tile.keys;
  const Vec before = load(m.maximum + j);
  Vec tops[4] = {before, before, before, before};  // four chains of comparisons hide their latency
  for (int64_t s = 0; s < keys; ++s) {
    const Vec x = load(m.scores + s * n + j) * tile.scale;
    tops[s % 4] = maximum(tops[s % 4], kDiagonal ? (query < static_cast<int32_t>(s) ? before : x) : x);
  }
  const Vec top = maximum(maximum(tops[0], tops[1]), maximum(tops[2], tops[3]));
  const auto weight = [&](int64_t s) {
    const Vec p = exp2(load(m.scores + s * n + j) * tile.scale - top);
    return kDiagonal ? (query < static_cast<int32_t>(s) ? Vec{} : p) : p;
  };
  const Vec shrink = exp2(before - top);
  Vec total = load(m.total + j) * shrink;
  for (int64_t s = 0; s < tile.keys; s += 2) {
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
  const bool diagonal = tile.first_key + tile.keys > tile.first_query + 1;
  for (int64_t j = 0; j < tile.queries; j += kLanes) {
    diagonal ? softmax_lanes<true>(tile, j, m) : softmax_lanes<false>(tile, j, m);
  }
}

template <class T>
class Forward {
  using E = Operand<T>;

 public:
  explicit Forward(const Attention& args)
      : heads_(args.heads),
        dim_(args.heads.head_dim),
        tokens_(args.qkv.dim(0)),
        scale_(args.scale * kLog2E),
        qkv_(args.qkv.as<T>()),
        out_(args.out.as<T>()),
        lse_(args.lse.as<float>()) {}

  void run(int64_t begin, int64_t end, int64_t head, std::byte* memory) const {
    const int64_t length = end - begin;
    if (length == 0) return;
    const ForwardMemory<E> m(memory, length, dim_);
    pack_keys(begin, length, head / (heads_.q_heads / heads_.kv_heads), m);
    for (int64_t t = 0; t < length; t += kBlock) query_block(begin, length, head, t, m);
  }

 private:
  void pack_keys(int64_t begin, int64_t length, int64_t kv_head, const ForwardMemory<E>& m) const {
    const T* keys = qkv_ + begin * heads_.qkv_width() + heads_.q_width() + kv_head * dim_;
    const T* values = keys + heads_.kv_width();
    copy_rows(keys, heads_.qkv_width(), length, length, dim_, m.keys);
    for (int64_t s = 0; s < length; s += kBlock) {
      copy_rows(values + s * heads_.qkv_width(), heads_.qkv_width(), std::min(kBlock, length - s), kBlock, dim_,
                m.rows);
      interleave_rows(m.rows, kBlock, dim_, round_up(dim_, kLanes), m.interleaved);
      b_to_a(m.interleaved, kBlock, dim_, round_up(dim_, kLanes), m.values + s * dim_);
    }
  }

  void query_block(int64_t begin, int64_t length, int64_t head, int64_t t, const ForwardMemory<E>& m) const {
    const int64_t count = std::min(kBlock, length - t), n = round_up(count, kLanes);
    copy_rows(qkv_ + (begin + t) * heads_.qkv_width() + head * dim_, heads_.qkv_width(), count, n, dim_, m.rows);
    features_to_b(m.rows, n, dim_, m.queries);
    std::fill(m.maximum, m.maximum + n, kNoMaximum);
    std::fill(m.total, m.total + n, 0.0f);
    std::fill(m.out, m.out + dim_ * n, 0.0f);
    for (int64_t s = 0; s <= t; s += kBlock) {
      const int64_t keys = std::min(kBlock, length - s);
      multiply<E>(
          {.a = m.keys + s * dim_, .a_stride = dim_, .b = m.queries, .c = m.scores, .m = keys, .n = n, .k = dim_});
      softmax(SoftmaxTile{t, s, n, keys, dim_, scale_}, m);
      multiply<E>({.a = m.values + s * dim_,
                   .a_stride = kBlock,
                   .b = m.p,
                   .c = m.out,
                   .m = dim_,
                   .n = n,
                   .k = round_up(keys, 2),
                   .start = Start::kOutput});
    }
    for (int64_t j = 0; j < n; ++j) m.factor[j] = 1.0f / m.total[j];
    write_transposed(m.out, n, dim_, m.factor, count, out_ + (begin + t) * heads_.q_width() + head * dim_,
                     heads_.q_width());
    for (int64_t j = 0; j < count; ++j) {
      lse_[head * tokens_ + begin + t + j] = (m.maximum[j] + std::log2(m.total[j])) * kLn2;
    }
  }

  HeadLayout heads_;
  int64_t dim_, tokens_;
  float scale_;
  const T* qkv_;
  T* out_;
  float* lse_;
};

template <class T>
int64_t worker_bytes(int64_t length, int64_t dim) {
  return ForwardMemory<Operand<T>>(nullptr, length, dim).bytes;
}

}  // namespace

int64_t attention_workspace(const Workload& w) {
  int64_t bytes = 0;
  with_act_type(w.compute, [&]<class T>(T) { bytes = worker_bytes<T>(w.max_length, w.heads.head_dim); });
  return bytes * thread_count();
}

void CpuOps::do_attention(Stream&, const Attention& args) {
  const Documents documents(args.cu_seqlens, args.qkv.dim(0), args.max_length);
  const auto* cu = documents.begins;
  with_act_type(args.qkv.dtype(), [&]<class T>(T) {
    const Forward<T> forward(args);
    for_each_task(documents, args.heads.q_heads, worker_bytes<T>(args.max_length, args.heads.head_dim), workspace(),
                  [&](int64_t d, int64_t head, std::byte* memory) { forward.run(cu[d], cu[d + 1], head, memory); });
  });
}

}  // namespace tokamak

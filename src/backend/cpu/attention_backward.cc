// Attention, backward (Dao et al. 2022, algorithm 4), on tiles of 64 keys and 64 queries, scores held transposed as in
// attention.cc. For each tile, with delta_t = dO_t . O_t and c = scale log2(e):
//   P^T = 2^(c K Q^T - lse log2(e));  dS^T = P^T (V dO^T - delta);
//   dV += P^T dO;  dK += scale dS^T Q;  dQ^T += scale K^T dS^T.
// With a cap, K Q^T is capped in place, c is 1, and dS^T has the cap's derivative as a factor.
// A task is a document and a key-value head. It visits the query heads of its group in order, so dK and dV have one
// writer and one order of summation. In bf16, P and dS are rounded to bf16 before their GEMMs.
#include <cmath>

#include "backend/cpu/attention_tasks.h"
#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/pack.h"
#include "backend/cpu/partition.h"

namespace tokamak {
namespace {

using namespace simd;

constexpr int64_t kBlock = kAttentionBlock;

// "by features", "by tokens": the dimension that the GEMM sums over. Dn is D padded to kLanes.
template <class E>
struct BackwardMemory {
  E* rows;                 // (kBlock, D)
  E* interleaved;          // (kBlock, Dn)
  E *keys, *values;        // (T, D): A by features
  E* keys_by_token;        // blocks of (D, kBlock): A
  E *queries, *dout;       // blocks of (D, kBlock): B by features
  E* queries_by_token;     // (T, Dn): B
  E* dout_by_token;        // (T, Dn): B
  float *lse, *delta;      // (T): lse log2(e); both 0 past the end
  float *scores, *dp;      // (kBlock, kBlock): S^T, dP^T
  E *p, *ds;               // (kBlock, kBlock): P^T, dS^T as A by tokens
  E* ds_by_key;            // (kBlock, kBlock): dS^T as B
  float *dkeys, *dvalues;  // (T, Dn)
  float* dqueries;         // blocks of (D, kBlock): dQ^T
  float* factor;           // (kBlock)
  int64_t bytes;

  BackwardMemory(std::byte* memory, int64_t length, int64_t dim) {
    const int64_t padded = round_up(length, kBlock), width = round_up(dim, kLanes);
    Carver carver(memory);
    rows = carver.take<E>(kBlock * dim);
    interleaved = carver.take<E>(kBlock * width);
    for (E** piece : {&keys, &values, &keys_by_token, &queries, &dout}) *piece = carver.take<E>(padded * dim);
    for (E** piece : {&queries_by_token, &dout_by_token}) *piece = carver.take<E>(padded * width);
    for (float** piece : {&lse, &delta}) *piece = carver.take<float>(padded);
    for (float** piece : {&scores, &dp}) *piece = carver.take<float>(kBlock * kBlock);
    for (E** piece : {&p, &ds, &ds_by_key}) *piece = carver.take<E>(kBlock * kBlock);
    for (float** piece : {&dkeys, &dvalues}) *piece = carver.take<float>(padded * width);
    dqueries = carver.take<float>(padded * dim);
    factor = carver.take<float>(kBlock);
    bytes = carver.used();
  }
};

struct GradientTile {
  TileMask mask;  // queries: a multiple of kLanes
  const ScoreScale& scale;
};

enum class Capped { kNo, kYes };

// Turns S^T and dP^T of a tile into P^T and dS^T, in the formats of the next three GEMMs.
template <TileMask::Hides kHides, Capped kCapped, class E>
void gradient_lanes(const GradientTile& tile, int64_t j, const BackwardMemory<E>& m) {
  const TileMask& mask = tile.mask;
  const float factor = tile.scale.factor();
  const int64_t n = mask.queries;
  const SeenKeys<kHides> seen(mask.first_query + j - mask.first_key, mask);
  const Vec lse = load(m.lse + mask.first_query + j), delta = load(m.delta + mask.first_query + j);
  const int64_t keys = seen.end();
  const auto row = [&](int64_t s) {
    Vec p{}, ds{};
    if (s < keys) {
      p = seen.pick(s, exp2(load(m.scores + s * n + j) * factor - lse), Vec{});
      ds = p * (load(m.dp + s * n + j) - delta);
      if constexpr (kCapped == Capped::kYes) ds *= tile.scale.slope(load(m.scores + s * n + j));
    }
    store(m.p + s * n + j, p);
    store(m.ds + s * n + j, ds);
    return ds;
  };
  for (int64_t s = 0; s < mask.keys; s += 2) {
    const Vec even = row(s), odd = row(s + 1);
    store_b(m.ds_by_key + s * n + j * kPair<E>, n, even, odd);
  }
}

template <class E>
void gradient(const GradientTile& tile, const BackwardMemory<E>& m) {
  with_mask(tile.mask.hides(), [&](auto hides) {
    for (int64_t j = 0; j < tile.mask.queries; j += kLanes) {
      tile.scale.capped() ? gradient_lanes<hides.value, Capped::kYes>(tile, j, m)
                          : gradient_lanes<hides.value, Capped::kNo>(tile, j, m);
    }
  });
}

template <class T>
class Backward {
  using E = TileElement<T>;
  using Memory = BackwardMemory<E>;

 public:
  explicit Backward(const AttentionBackward& args)
      : heads_(args.heads),
        dim_(args.heads.head_dim),
        width_(round_up(dim_, kLanes)),
        tokens_(args.qkv.dim(0)),
        scale_(args.scale),
        score_scale_(args.scale, args.cap),
        qkv_(args.qkv.as<T>()),
        out_(args.out.as<T>()),
        dout_(args.dout.as<T>()),
        window_(effective_window(args.window, args.max_length)),
        lse_(args.lse.as<float>()),
        dqkv_(args.dqkv.as<T>()) {}

  void run(int64_t begin, int64_t end, int64_t kv_head, std::byte* memory) const {
    const int64_t length = end - begin, group = heads_.q_heads / heads_.kv_heads;
    if (length == 0) return;
    const Memory m(memory, length, dim_);
    pack_keys(begin, length, kv_head, m);
    std::fill(m.dkeys, m.dkeys + length * width_, 0.0f);
    std::fill(m.dvalues, m.dvalues + length * width_, 0.0f);
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      pack_queries(begin, length, head, m);
      std::fill(m.dqueries, m.dqueries + round_up(length, kBlock) * dim_, 0.0f);
      for (int64_t s = 0; s < length; s += kBlock) {
        const int64_t queries = window_ > 0 ? std::min(length, s + kBlock - 1 + window_) : length;
        for (int64_t t = s; t < queries; t += kBlock) tile(length, s, t, m);
      }
      std::fill(m.factor, m.factor + kBlock, scale_);
      for (int64_t t = 0; t < length; t += kBlock) {
        const int64_t count = std::min(kBlock, length - t);
        write_transposed(m.dqueries + t * dim_, round_up(count, kLanes), dim_, m.factor, count,
                         dqkv_ + (begin + t) * heads_.qkv_width() + head * dim_, heads_.qkv_width());
      }
    }
    T* dkeys = dqkv_ + begin * heads_.qkv_width() + heads_.q_width() + kv_head * dim_;
    write_rows(m.dkeys, length, scale_, dkeys);
    write_rows(m.dvalues, length, 1.0f, dkeys + heads_.kv_width());
  }

 private:
  void pack_keys(int64_t begin, int64_t length, int64_t kv_head, const Memory& m) const {
    const T* keys = qkv_ + begin * heads_.qkv_width() + heads_.q_width() + kv_head * dim_;
    copy_rows(keys, heads_.qkv_width(), length, round_up(length, kBlock), dim_, m.keys);
    copy_rows(keys + heads_.kv_width(), heads_.qkv_width(), length, length, dim_, m.values);
    for (int64_t s = 0; s < length; s += kBlock) {
      interleave_rows(m.keys + s * dim_, kBlock, dim_, width_, m.interleaved);
      b_to_a(m.interleaved, kBlock, dim_, width_, m.keys_by_token + s * dim_);
    }
  }

  void pack_queries(int64_t begin, int64_t length, int64_t head, const Memory& m) const {
    const int64_t qkv_stride = heads_.qkv_width(), out_stride = heads_.q_width();
    for (int64_t t = 0; t < length; t += kBlock) {
      const int64_t count = std::min(kBlock, length - t), n = round_up(count, kLanes);
      copy_rows(qkv_ + (begin + t) * qkv_stride + head * dim_, qkv_stride, count, n, dim_, m.rows);
      features_to_b(m.rows, n, dim_, m.queries + t * dim_);
      interleave_rows(m.rows, n, dim_, width_, m.queries_by_token + t * width_);
      const T* out = out_ + (begin + t) * out_stride + head * dim_;
      const T* dout = dout_ + (begin + t) * out_stride + head * dim_;
      copy_rows(dout, out_stride, count, n, dim_, m.rows);
      features_to_b(m.rows, n, dim_, m.dout + t * dim_);
      interleave_rows(m.rows, n, dim_, width_, m.dout_by_token + t * width_);
      for (int64_t i = 0; i < n; ++i) {
        m.lse[t + i] = i < count ? lse_[head * tokens_ + begin + t + i] * kLog2E : 0.0f;
        m.delta[t + i] = i < count ? row_product(out + i * out_stride, dout + i * out_stride) : 0.0f;
      }
    }
  }

  float row_product(const T* x, const T* y) const {
    float total = 0;
#pragma omp simd reduction(+ : total)
    for (int64_t c = 0; c < dim_; ++c) total += to_float(x[c]) * to_float(y[c]);
    return total;
  }

  void tile(int64_t length, int64_t s, int64_t t, const Memory& m) const {
    const int64_t keys = std::min(kBlock, length - s), n = round_up(std::min(kBlock, length - t), kLanes);
    const E *k = m.keys + s * dim_, *v = m.values + s * dim_;
    multiply<E>({.a = k, .a_stride = dim_, .b = m.queries + t * dim_, .c = m.scores, .m = keys, .n = n, .k = dim_});
    multiply<E>({.a = v, .a_stride = dim_, .b = m.dout + t * dim_, .c = m.dp, .m = keys, .n = n, .k = dim_});
    score_scale_.cap(m.scores, keys * n);
    gradient(GradientTile{{t, n, s, keys, window_}, score_scale_}, m);
    const auto add_keys = [&](const E* weights, const E* rows, float* sums) {
      multiply<E>({.a = weights,
                   .a_stride = n,
                   .b = rows + t * width_,
                   .c = sums + s * width_,
                   .m = keys,
                   .n = width_,
                   .k = n,
                   .start = Start::kOutput});
    };
    add_keys(m.p, m.dout_by_token, m.dvalues);
    add_keys(m.ds, m.queries_by_token, m.dkeys);
    multiply<E>({.a = m.keys_by_token + s * dim_,
                 .a_stride = kBlock,
                 .b = m.ds_by_key,
                 .c = m.dqueries + t * dim_,
                 .m = dim_,
                 .n = n,
                 .k = round_up(keys, 2),
                 .start = Start::kOutput});
  }

  void write_rows(const float* from, int64_t length, float factor, T* to) const {
    for (int64_t r = 0; r < length; ++r) {
      for (int64_t c = 0; c < dim_; ++c) {
        to[r * heads_.qkv_width() + c] = from_float<T>(from[r * width_ + c] * factor);
      }
    }
  }

  HeadLayout heads_;
  int64_t dim_, width_, tokens_;
  float scale_;
  ScoreScale score_scale_;
  const T *qkv_, *out_, *dout_;
  int64_t window_;
  const float* lse_;
  T* dqkv_;
};

template <class T>
int64_t worker_bytes(int64_t length, int64_t dim) {
  return BackwardMemory<TileElement<T>>(nullptr, length, dim).bytes;
}

}  // namespace

int64_t attention_backward_workspace(const Workload& w) {
  int64_t bytes = 0;
  with_act_type(w.compute, [&]<class T>(T) { bytes = worker_bytes<T>(w.max_length, w.heads.head_dim); });
  return bytes * thread_count();
}

void CpuOps::do_attention_backward(Stream&, const AttentionBackward& args) {
  const Documents documents(args.cu_seqlens, args.qkv.dim(0), args.max_length);
  const auto* cu = documents.begins;
  with_act_type(args.qkv.dtype(), [&]<class T>(T) {
    const Backward<T> backward(args);
    for_each_task(documents.count, args.heads.kv_heads, worker_bytes<T>(args.max_length, args.heads.head_dim),
                  workspace(),
                  [&](int64_t d, int64_t head, std::byte* memory) { backward.run(cu[d], cu[d + 1], head, memory); });
  });
}

}  // namespace tokamak

// Attention over cached keys and values. A task is a sequence and a key-value head, with all query heads that share it.
// Many new tokens use the tiles of attention_forward.h. Few new tokens, as in decoding, are limited by reading the
// cache. Then each block of keys and values is read once for all rows; a row is a new token and a head of the group.
// This is in f32 throughout, with the running maximum and total of Dao et al. (2022).
#include "backend/cpu/attention_forward.h"
#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/partition.h"

namespace tokamak {
namespace {

using namespace simd;

constexpr int64_t kFewTokens = 4;            // per sequence: above this, tiles are faster
constexpr int64_t kKeysAtOnce = kCacheTile;  // keys and values of 128 features in bf16 fit in L1
constexpr int kVecsAtOnce = 4;               // vectors of a row's output that stay in registers

// The batch, validated, and the addresses of its tensors.
struct Batch {
  const int32_t *cu, *slots, *cached;
  int64_t sequences, positions;  // S and R

  Batch(const CachedSequences& s, int64_t tokens, const Tensor& cache)
      : cu(s.cu_seqlens.as<int32_t>()),
        slots(s.slots.as<int32_t>()),
        cached(s.cached.as<int32_t>()),
        sequences(s.slots.count()),
        positions(cache.dim(2)) {
    TOKAMAK_CHECK(cu[0] == 0 && cu[sequences] == tokens, "sequences cover [", cu[0], ", ", cu[sequences], ") of ",
                  tokens, " tokens");
    for (int64_t i = 0; i < sequences; ++i) {
      TOKAMAK_CHECK(0 <= slots[i] && slots[i] < cache.dim(0), "sequence ", i, " in slot ", slots[i], " of ",
                    cache.dim(0));
      const bool fits = cached[i] + count(i) <= positions || (positions % kCacheTile == 0 && count(i) <= positions);
      TOKAMAK_CHECK(cu[i] <= cu[i + 1] && cached[i] >= 0 && fits, "sequence ", i, " has ", cached[i],
                    " tokens cached and ", count(i), " new ones, the cache room for ", positions);
    }
  }
  int64_t count(int64_t sequence) const { return cu[sequence + 1] - cu[sequence]; }
};

// A worker's memory for `rows` rows.
struct RowsMemory {
  int64_t width;           // D in whole vectors
  float *queries, *out;    // (rows, width)
  float* scores;           // (kKeysAtOnce): of the current row
  float *maximum, *total;  // (rows)
  int64_t bytes;

  RowsMemory(std::byte* memory, int64_t rows, int64_t dim) : width(round_up(dim, kLanes)) {
    Carver carver(memory);
    queries = carver.take<float>(rows * width);
    out = carver.take<float>(rows * width);
    scores = carver.take<float>(kKeysAtOnce);
    maximum = carver.take<float>(rows);
    total = carver.take<float>(rows);
    bytes = carver.used();
  }
};

// Blocks of keys and values are too short for the processor to foresee the next one. So each is fetched into the
// second-level cache while the one before it is computed.
template <class T>
void prefetch(const T* from, int64_t count) {
  constexpr int64_t kLine = 64 / sizeof(T);
  for (int64_t i = 0; i < count; i += kLine) __builtin_prefetch(from + i, 0, 2);
}

template <class T>
Vec load_features(const T* row, int64_t at, int64_t dim) {
  return at + kLanes <= dim ? load(row + at) : load_part(row + at, dim - at, 0.0f);
}

// Scores of kLanes keys; those from `count` on are 0.
template <class T>
Vec scores_of(const float* query, const T* keys, int64_t count, int64_t dim) {
  Vec sums[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    sums[i] = Vec{};
    if (i >= count) continue;
    for (int64_t c = 0; c < dim; c += kLanes) sums[i] += load(query + c) * load_features(keys + i * dim, c, dim);
  }
  return sums_of_rows(sums);
}

// out += sum over keys of weights[s] values[s], for the kVecs vectors of features from `at` on. `next` is read after
// this.
template <int kVecs, class T>
void add_values(const float* weights, const T* values, const T* next, int64_t keys, int64_t dim, int64_t at,
                float* out) {
  Vec sums[kVecs];
  for (int v = 0; v < kVecs; ++v) sums[v] = load(out + at + v * kLanes);
  for (int64_t s = 0; s < keys; ++s) {
    prefetch(next + s * dim + at, kVecs * kLanes);
    for (int v = 0; v < kVecs; ++v) sums[v] += weights[s] * load_features(values + s * dim, at + v * kLanes, dim);
  }
  for (int v = 0; v < kVecs; ++v) store(out + at + v * kLanes, sums[v]);
}

// One row against `count` keys and their values, at most kKeysAtOnce. The keys at `next` follow them.
template <class T>
void attend_block(const T* keys, const T* values, const T* next, int64_t count, int64_t dim, const ScoreScale& scale,
                  int64_t row, const RowsMemory& m) {
  float top = m.maximum[row];
  for (int64_t s = 0; s < count; s += kLanes) {
    prefetch(values + s * dim, kLanes * dim);
    store(m.scores + s, scale.score(scores_of(m.queries + row * m.width, keys + s * dim, count - s, dim)));
    for (int64_t i = s; i < std::min(s + kLanes, count); ++i) top = std::max(top, m.scores[i]);
  }
  const float shrink = exp2(splat(m.maximum[row] - top))[0];
  float total = m.total[row] * shrink;
  for (int64_t s = 0; s < count; s += kLanes) {
    store(m.scores + s, exp2(load(m.scores + s) - top));
    for (int64_t i = s; i < std::min(s + kLanes, count); ++i) total += m.scores[i];
  }
  m.maximum[row] = top;
  m.total[row] = total;
  float* out = m.out + row * m.width;
  for (int64_t c = 0; c < m.width; c += kLanes) store(out + c, load(out + c) * shrink);
  int64_t c = 0;
  for (; c + kVecsAtOnce * kLanes <= dim; c += kVecsAtOnce * kLanes) {
    add_values<kVecsAtOnce>(m.scores, values, next, count, dim, c, out);
  }
  for (; c < dim; c += kLanes) add_values<1>(m.scores, values, next, count, dim, c, out);
}

template <class T>
class Attending {
 public:
  Attending(const CachedAttention& args, const Batch& batch)
      : heads_(args.heads),
        batch_(batch),
        dim_(args.heads.head_dim),
        group_(args.heads.q_heads / args.heads.kv_heads),
        scale_(args.scale, args.cap),
        window_(effective_window(args.window, args.max_length)),
        qkv_(args.qkv.as<T>()),
        cache_(args.cache.as<T>()),
        out_(args.out.as<T>()) {}

  void run(int64_t sequence, int64_t kv_head, std::byte* memory) const {
    const int64_t fresh = batch_.count(sequence);
    if (fresh == 0) return;
    fresh <= kFewTokens ? run_rows(sequence, kv_head, memory) : run_tiles(sequence, kv_head, memory);
  }

  static int64_t bytes(int64_t max_length, const HeadLayout& heads) {
    const int64_t rows = kFewTokens * heads.q_heads / heads.kv_heads;
    return std::max(RowsMemory(nullptr, rows, heads.head_dim).bytes,
                    flash::worker_bytes<T>(max_length, heads.head_dim));
  }

 private:
  const T* keys(int64_t sequence, int64_t kv_head) const {
    return cache_ + (batch_.slots[sequence] * 2 * heads_.kv_heads + kv_head) * batch_.positions * dim_;
  }
  const T* values(int64_t sequence, int64_t kv_head) const {
    return keys(sequence, kv_head) + heads_.kv_heads * batch_.positions * dim_;
  }

  const T* keys_after(int64_t sequence, int64_t kv_head) const {  // of the next task
    if (kv_head + 1 < heads_.kv_heads) return keys(sequence, kv_head + 1);
    return keys(std::min(sequence + 1, batch_.sequences - 1), 0);
  }

  void run_tiles(int64_t sequence, int64_t kv_head, std::byte* memory) const {
    const int64_t fresh = batch_.count(sequence), before = batch_.cached[sequence];
    const int64_t first = TileMask::first_tile(before, window_), count = before + fresh - first;
    const flash::ForwardMemory<TileElement<T>> m(memory, count, dim_);
    flash::pack_keys<T>({.keys = keys(sequence, kv_head),
                         .values = values(sequence, kv_head),
                         .stride = dim_,
                         .count = count,
                         .first = first,
                         .ring = batch_.positions},
                        dim_, m);
    const int64_t token = batch_.cu[sequence];
    for (int64_t head = kv_head * group_; head < (kv_head + 1) * group_; ++head) {
      flash::attend<T>({.rows = qkv_ + token * heads_.qkv_width() + head * dim_,
                        .stride = heads_.qkv_width(),
                        .count = fresh,
                        .first = before - first,
                        .out = out_ + token * heads_.q_width() + head * dim_,
                        .out_stride = heads_.q_width(),
                        .lse = nullptr,
                        .window = window_},
                       count, dim_, scale_, m);
    }
  }

  // Row r is token r / group_ and head r % group_ of the group.
  void run_rows(int64_t sequence, int64_t kv_head, std::byte* memory) const {
    const int64_t fresh = batch_.count(sequence), before = batch_.cached[sequence], rows = fresh * group_;
    const RowsMemory m(memory, rows, dim_);
    std::fill(m.queries, m.queries + rows * m.width, 0.0f);
    std::fill(m.out, m.out + rows * m.width, 0.0f);
    for (int64_t r = 0; r < rows; ++r) {
      const T* query =
          qkv_ + (batch_.cu[sequence] + r / group_) * heads_.qkv_width() + (kv_head * group_ + r % group_) * dim_;
      for (int64_t i = 0; i < dim_; ++i) m.queries[r * m.width + i] = to_float(query[i]);
      m.maximum[r] = flash::kNoMaximum;
      m.total[r] = 0.0f;
    }
    const auto first_seen = [&](int64_t position) {
      return window_ > 0 ? std::max<int64_t>(position - window_ + 1, 0) : 0;
    };
    for (int64_t s = first_seen(before) / kKeysAtOnce * kKeysAtOnce; s < before + fresh; s += kKeysAtOnce) {
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t position = before + r / group_;
        const int64_t begin = std::max(s, first_seen(position)), end = std::min(s + kKeysAtOnce, position + 1);
        if (begin >= end) continue;
        const T* block = keys(sequence, kv_head) + begin % batch_.positions * dim_;
        const T* next = s + kKeysAtOnce < before + fresh ? block + kKeysAtOnce * dim_ : keys_after(sequence, kv_head);
        attend_block(block, block + heads_.kv_heads * batch_.positions * dim_, next, end - begin, dim_, scale_, r, m);
      }
    }
    for (int64_t r = 0; r < rows; ++r) {
      T* to = out_ + (batch_.cu[sequence] + r / group_) * heads_.q_width() + (kv_head * group_ + r % group_) * dim_;
      for (int64_t i = 0; i < dim_; ++i) to[i] = from_float<T>(m.out[r * m.width + i] / m.total[r]);
    }
  }

  HeadLayout heads_;
  const Batch& batch_;
  int64_t dim_, group_;
  ScoreScale scale_;
  int64_t window_;
  const T* qkv_;
  const T* cache_;
  T* out_;
};

}  // namespace

int64_t cached_attention_workspace(const Workload& w) {
  if (w.cached_tokens == 0) return 0;
  int64_t bytes = 0;
  with_act_type(w.compute, [&]<class T>(T) { bytes = Attending<T>::bytes(w.max_length, w.heads); });
  return bytes * thread_count();
}

void CpuOps::do_cache_append(Stream&, const CacheAppend& args) {
  const Batch batch(args.sequences, args.qkv.dim(0), args.cache);
  const int64_t dim = args.heads.head_dim, kv_heads = 2 * args.heads.kv_heads, width = args.heads.qkv_width();
  with_act_type(args.qkv.dtype(), [&]<class T>(T) {
    const T* from = args.qkv.as<T>() + args.heads.q_width();
    T* cache = args.cache.as<T>();
    for (int64_t i = 0; i < batch.sequences; ++i) {
      parallel_for(batch.count(i), row_grain(width), [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
          const T* token = from + (batch.cu[i] + t) * width;
          for (int64_t h = 0; h < kv_heads; ++h) {
            const int64_t row = (batch.cached[i] + t) % batch.positions;
            T* to = cache + ((batch.slots[i] * kv_heads + h) * batch.positions + row) * dim;
            std::copy(token + h * dim, token + (h + 1) * dim, to);
          }
        }
      });
    }
  });
}

void CpuOps::do_cached_attention(Stream&, const CachedAttention& args) {
  const Batch batch(args.sequences, args.qkv.dim(0), args.cache);
  for (int64_t i = 0; i < batch.sequences; ++i) {
    const int64_t fresh = batch.count(i);
    TOKAMAK_CHECK(fresh <= args.max_new && (fresh == 0 || batch.cached[i] + fresh <= args.max_length), "sequence ", i,
                  " has ", batch.cached[i], " tokens cached and ", fresh, " new ones; max_new ", args.max_new,
                  ", max_length ", args.max_length);
  }
  with_act_type(args.qkv.dtype(), [&]<class T>(T) {
    const Attending<T> attending(args, batch);
    for_each_task(batch.sequences, args.heads.kv_heads, Attending<T>::bytes(args.max_length, args.heads), workspace(),
                  [&](int64_t sequence, int64_t head, std::byte* memory) { attending.run(sequence, head, memory); });
  });
}

}  // namespace tokamak

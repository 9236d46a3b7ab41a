// Attention over cached keys and values, in f32 (split-K, as flash decoding). A block has up to kRows rows of a
// sequence and a key-value head, and a part of kSplitKeys keys. A row is a new token and a head of the group. A block
// reads its keys once, 16 bytes per thread: this bounds decoding. A second kernel adds the parts of longer sequences.
// Decoding should take one read of the cache at the GPU's bandwidth. Example: Hkv 8, D 128, 8 sequences of 4096 tokens
// in bf16 are 134 MB, 28 us at 4.8 TB/s. The split depends on the sequence alone, so a sequence has the same bits in
// any batch.
#include "base/error.h"
#include "base/math.h"
#include "cuda/attention/score_scale.h"
#include "cuda/cuda_ops.h"
#include "cuda/device.h"
#include "cuda/launch.h"
#include "cuda/reduce.h"
#include "cuda/vec.h"

namespace tokamak {
namespace {

using flash::Cap;

constexpr int kThreads = 128, kWarps = kThreads / kWarp;
constexpr int kKeys = kCacheTile;     // of a tile
constexpr int kLanesPerKey = 8;       // threads per score
constexpr int kSplitKeys = 512;       // per part; a multiple of kKeys
constexpr float kNoMaximum = -1e30f;  // below any score, and finite: differences stay finite

// The batch, as kernel arguments.
template <class T>
struct Cached {
  const T* qkv;
  T* cache;
  const int32_t *cu, *slots, *cached;
  int sequences, q_heads, kv_heads, head_dim;
  int64_t tokens, rows_of_cache;
  int positions;  // R

  template <class Args>
  explicit Cached(const Args& args)
      : qkv(args.qkv.template as<T>()),
        cache(args.cache.template as<T>()),
        cu(args.sequences.cu_seqlens.template as<int32_t>()),
        slots(args.sequences.slots.template as<int32_t>()),
        cached(args.sequences.cached.template as<int32_t>()),
        sequences(static_cast<int>(args.sequences.slots.count())),
        q_heads(static_cast<int>(args.heads.q_heads)),
        kv_heads(static_cast<int>(args.heads.kv_heads)),
        head_dim(static_cast<int>(args.heads.head_dim)),
        tokens(args.qkv.dim(0)),
        rows_of_cache(args.cache.dim(0)),
        positions(static_cast<int>(args.cache.dim(2))) {}

  __device__ int64_t stride() const { return (q_heads + 2 * int64_t{kv_heads}) * head_dim; }
  __device__ int group() const { return q_heads / kv_heads; }
  // Address of head kv of a sequence; kv counts the key heads, then the value heads. Null for an invalid slot.
  __device__ T* head(int sequence, int kv) const {
    const int64_t slot = slots[sequence];
    if (slot < 0 || slot >= rows_of_cache) return nullptr;
    return cache + (slot * 2 * kv_heads + kv) * positions * head_dim;
  }
  // The last sequence whose first slot is at or before `slot`; sequence s has a(cu[s]) + b(s) slots before it.
  template <class Before>
  __device__ int sequence_at(int64_t slot, const Before& before) const {
    int found = 0;
    for (int end = sequences; end - found > 1;) {
      const int middle = found + (end - found) / 2;
      (before(middle) <= slot ? found : end) = middle;
    }
    return found;
  }
};

// Block x copies the keys and values of new token x into the cache. In qkv they are adjacent.
template <class T, int kWidth>
__global__ void append(Cached<T> c) {
  const int64_t token = blockIdx.x;
  const int sequence = c.sequence_at(token, [&](int s) { return int64_t{c.cu[s]}; });
  const int64_t position = c.cached[sequence] + token - c.cu[sequence];
  T* const first = c.head(sequence, 0);
  if (first == nullptr || position < 0) return;
  const T* from = c.qkv + token * c.stride() + int64_t{c.q_heads} * c.head_dim;
  for (int i = static_cast<int>(threadIdx.x) * kWidth; i < 2 * c.kv_heads * c.head_dim; i += kThreads * kWidth) {
    const int kv = i / c.head_dim, feature = i % c.head_dim;
    store_packed<kWidth>(first + (int64_t{kv} * c.positions + position % c.positions) * c.head_dim + feature,
                         load_packed<kWidth>(from + i));
  }
}

// A block's shared memory, f32.
template <int kRows>
struct Shared {
  float *queries, *out;             // (kRows, D)
  float (*weights)[kKeys];          // (kRows, kKeys): scores, then weights
  float *maximum, *total, *shrink;  // (kRows)
  static constexpr size_t kFixed = kRows * (kKeys + 3);

  __device__ Shared(unsigned char* memory, int dim)
      : queries(reinterpret_cast<float*>(memory)),
        out(queries + kRows * dim),
        weights(reinterpret_cast<float (*)[kKeys]>(out + kRows * dim)),
        maximum(weights[kRows]),
        total(maximum + kRows),
        shrink(total + kRows) {}
  static size_t bytes(int dim) { return (2 * kRows * static_cast<size_t>(dim) + kFixed) * sizeof(float); }
};

// The rows of a block: [first, first + count) of the sequence's rows.
struct Rows {
  int first, count, group;
  int begin, cached;  // the sequence's first new token, and its number of cached tokens
  __device__ int64_t token(int r) const { return int64_t{begin} + (first + r) / group; }
  __device__ int head_of_group(int r) const { return (first + r) % group; }
  __device__ int position(int r) const { return cached + (first + r) / group; }
};

// Scores of keys [key, key + kKeys) below `end`, of which the first is at `keys`. Others, keys after a row's token and
// keys before its window are masked. Scores are in units of ln 2.
template <int kRows, class T, int kWidth, Cap kCap>
__device__ void form_scores(const Shared<kRows>& shared, const Rows& rows, const T* keys, int key, int end, int dim,
                            const flash::ScoreScale<kCap>& scale, int window) {
  const int lane_of_key = static_cast<int>(threadIdx.x) % kLanesPerKey;
  for (int s = static_cast<int>(threadIdx.x) / kLanesPerKey; s < kKeys; s += kThreads / kLanesPerKey) {
    float sums[kRows] = {};
    if (key + s < end) {
      for (int i = lane_of_key * kWidth; i < dim; i += kLanesPerKey * kWidth) {
        const Vec<kWidth> k = load<kWidth>(keys + s * dim + i);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
#pragma unroll
          for (int j = 0; j < kWidth; ++j) sums[r] += shared.queries[r * dim + i + j] * k[j];
        }
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int offset = kLanesPerKey / 2; offset > 0; offset /= 2) {
        sums[r] += __shfl_xor_sync(0xFFFFFFFFu, sums[r], offset);
      }
      const auto before = static_cast<uint32_t>(rows.position(r) - key - s);  // huge for a key after the token
      const bool seen = key + s < end && before < static_cast<uint32_t>(window);
      if (lane_of_key == 0) shared.weights[r][s] = seen ? scale(sums[r]) : -INFINITY;
    }
  }
}

// Turns scores into weights, one warp per row, and rescales the statistics to the new maximum.
template <int kRows>
__device__ void form_weights(const Shared<kRows>& shared) {
  for (int r = warp(); r < kRows; r += kWarps) {
    float top = shared.maximum[r], total = 0;
    for (int s = lane(); s < kKeys; s += kWarp) top = fmaxf(top, shared.weights[r][s]);
    top = warp_reduce(top, [](float a, float b) { return fmaxf(a, b); });
    for (int s = lane(); s < kKeys; s += kWarp)
      total += shared.weights[r][s] = ptx::exp2_approx(shared.weights[r][s] - top);
    total = warp_sum(total);
    __syncwarp();
    if (lane() == 0) {
      shared.shrink[r] = ptx::exp2_approx(shared.maximum[r] - top);
      shared.total[r] = shared.total[r] * shared.shrink[r] + total;
      shared.maximum[r] = top;
    }
  }
}

// Partial results if there are several parts: for each row and part a maximum, a total, and D sums.
struct Parts {
  float* values;  // null: one part, the block writes the result
  int parts;
  __device__ float* at(int64_t token, int head, int q_heads, int part, int dim) const {
    return values + ((token * q_heads + head) * parts + part) * (dim + 2);
  }
};

// Block (x, y, z): rows x kRows .., key-value head y, part z of the keys.
template <class T, int kWidth, int kRows, Cap kCap>
__global__ void __launch_bounds__(kThreads, kCap == Cap::kNo ? 4 : 3)
    attend(Cached<T> c, T* out, flash::ScoreScale<kCap> scale, Parts parts, int part_keys, int window) {
  TOKAMAK_SHARED_MEMORY(memory);
  const int dim = c.head_dim, kv = static_cast<int>(blockIdx.y), part = static_cast<int>(blockIdx.z);
  const Shared<kRows> shared(memory, dim);
  // A sequence's row blocks have the slots from cu[s] group / kRows + s on, see attention/problem.h.
  const auto slots_before = [&](int s) { return int64_t{c.cu[s]} * c.group() / kRows + s; };
  const int sequence = c.sequence_at(blockIdx.x, slots_before);
  const int all = (c.cu[sequence + 1] - c.cu[sequence]) * c.group();
  Rows rows{static_cast<int>(blockIdx.x - slots_before(sequence)) * kRows, 0, c.group(), c.cu[sequence],
            c.cached[sequence]};
  rows.count = min(kRows, all - rows.first);
  if (rows.count <= 0) return;
  const T* const keys = c.head(sequence, kv);
  const T* const values = keys + int64_t{c.kv_heads} * c.positions * dim;
  // Without keys the result would be 0 / 0.
  const int seen = keys == nullptr ? 0 : rows.position(rows.count - 1) + 1;
  const int end = min(seen, part * part_keys + part_keys);

  for (int i = static_cast<int>(threadIdx.x); i < kRows * dim; i += kThreads) {
    const int r = i / dim;
    const T* token = c.qkv + rows.token(min(r, rows.count - 1)) * c.stride();
    shared.queries[i] = to_float(token[(kv * c.group() + rows.head_of_group(r)) * dim + i % dim]);
    shared.out[i] = 0.0f;
  }
  for (int r = static_cast<int>(threadIdx.x); r < kRows; r += kThreads) {
    shared.maximum[r] = kNoMaximum;
    shared.total[r] = 0.0f;
  }
  __syncthreads();

  // For the sums: the threads that share a key, with kWidth features each, and the keys that are read at once.
  const int across = dim / kWidth, at_once = kThreads / across;
  const int feature = static_cast<int>(threadIdx.x) % across * kWidth, mine = static_cast<int>(threadIdx.x) / across;
  Vec<kWidth> sums[kRows] = {};
  const int begin = max(part * part_keys, max(rows.position(0) - window + 1, 0) / kKeys * kKeys);
  int row = begin % c.positions;  // of the tile in the cache
  for (int key = begin; key < end; key += kKeys) {
    form_scores<kRows, T, kWidth, kCap>(shared, rows, keys + int64_t{row} * dim, key, end, dim, scale, window);
    __syncthreads();
    form_weights(shared);
    __syncthreads();
    const int count = min(kKeys, end - key);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int j = 0; j < kWidth; ++j) sums[r][j] *= shared.shrink[r];
    }
    if (mine < at_once) {
      for (int s = mine; s < count; s += at_once) {
        const Vec<kWidth> v = load<kWidth>(values + int64_t{row + s} * dim + feature);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          const float weight = shared.weights[r][s];
#pragma unroll
          for (int j = 0; j < kWidth; ++j) sums[r][j] += weight * v[j];
        }
      }
    }
    __syncthreads();  // the weights have been read
    row = row + kKeys < c.positions ? row + kKeys : 0;
  }
  for (int turn = 0; turn < at_once; ++turn) {  // fixed order: the same bits in every run
    if (mine == turn) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int j = 0; j < kWidth; ++j) shared.out[r * dim + feature + j] += sums[r][j];
      }
    }
    __syncthreads();
  }

  for (int i = static_cast<int>(threadIdx.x); i < rows.count * dim; i += kThreads) {
    const int r = i / dim, head = kv * c.group() + rows.head_of_group(r);
    if (parts.values == nullptr) {
      out[(rows.token(r) * c.q_heads + head) * dim + i % dim] = from_float<T>(shared.out[i] / shared.total[r]);
    } else {
      parts.at(rows.token(r), head, c.q_heads, part, dim)[2 + i % dim] = shared.out[i];
    }
  }
  if (parts.values == nullptr) return;
  for (int r = static_cast<int>(threadIdx.x); r < rows.count; r += kThreads) {
    float* to = parts.at(rows.token(r), kv * c.group() + rows.head_of_group(r), c.q_heads, part, dim);
    to[0] = shared.maximum[r];
    to[1] = shared.total[r];
  }
}

// Block (x, y) combines the parts of token x, head y, in a fixed order. Parts without keys of the token have total 0.
template <class T>
__global__ void join(Parts parts, T* out, int dim) {
  const int head = static_cast<int>(blockIdx.y), heads = static_cast<int>(gridDim.y);
  const float* part = parts.at(blockIdx.x, head, heads, 0, dim);
  float top = kNoMaximum, total = 0;
  for (int p = 0; p < parts.parts; ++p) top = fmaxf(top, part[p * (dim + 2)]);
  for (int p = 0; p < parts.parts; ++p) {
    total += part[p * (dim + 2) + 1] * ptx::exp2_approx(part[p * (dim + 2)] - top);
  }
  for (int i = static_cast<int>(threadIdx.x); i < dim; i += kThreads) {
    float sum = 0;
    for (int p = 0; p < parts.parts; ++p) {
      sum += part[p * (dim + 2) + 2 + i] * ptx::exp2_approx(part[p * (dim + 2)] - top);
    }
    out[(int64_t{blockIdx.x} * heads + head) * dim + i] = from_float<T>(sum / total);
  }
}

int64_t parts_of(int64_t max_length) { return (max_length + kSplitKeys - 1) / kSplitKeys; }

int64_t parts_bytes(int64_t tokens, const HeadLayout& heads, int64_t max_length) {
  const int64_t parts = parts_of(max_length);
  if (parts <= 1) return 0;
  return tokens * heads.q_heads * parts * (heads.head_dim + 2) * static_cast<int64_t>(sizeof(float));
}

template <class T, int kWidth, int kRows, Cap kCap>
void launch_attend(cudaStream_t stream, const CachedAttention& args, const Parts& parts) {
  const Cached<T> c(args);
  const int64_t pieces = args.qkv.dim(0) * (c.q_heads / c.kv_heads) / kRows + c.sequences;
  const dim3 grid(static_cast<unsigned>(pieces), static_cast<unsigned>(c.kv_heads), static_cast<unsigned>(parts.parts));
  const auto longest = static_cast<int>(args.max_length);  // positions have 32 bits
  const int part_keys = parts.values != nullptr ? kSplitKeys : longest;
  const int window = args.window > 0 && args.window < longest ? static_cast<int>(args.window) : longest;
  launch({"cached_attention", grid, kThreads, Shared<kRows>::bytes(c.head_dim)}, stream, attend<T, kWidth, kRows, kCap>,
         c, args.out.as<T>(), flash::ScoreScale<kCap>(args.scale, TanhCap(args.cap)), parts, part_keys, window);
}

template <class T, int kWidth, Cap kCap>
void launch_rows(cudaStream_t stream, const CachedAttention& args, const Parts& parts) {
  const int64_t rows = args.max_new * (args.heads.q_heads / args.heads.kv_heads);
  if (rows == 1) return launch_attend<T, kWidth, 1, kCap>(stream, args, parts);
  rows <= 4 ? launch_attend<T, kWidth, 4, kCap>(stream, args, parts)
            : launch_attend<T, kWidth, 8, kCap>(stream, args, parts);
}

}  // namespace

int64_t cached_attention_scratch(const Workload& w) { return parts_bytes(w.cached_tokens, w.heads, w.max_length); }

void CudaOps::do_cache_append(Stream& stream, const CacheAppend& args) {
  with_act_type(args.qkv.dtype(), [&]<class T>(T) {
    const auto run = [&]<int kWidth>() {
      launch({"cache_append", static_cast<unsigned>(args.qkv.dim(0)), kThreads}, handle(stream), append<T, kWidth>,
             Cached<T>(args));
    };
    with_vec_width<T>(args.heads.head_dim, run, args.qkv.as<T>(), args.cache.as<T>());
  });
}

void CudaOps::do_cached_attention(Stream& stream, const CachedAttention& args) {
  const int64_t n = args.qkv.dim(0), dim = args.heads.head_dim;
  if (n == 0) return;
  // Prompts have enough blocks without splitting, and splitting them would need much memory.
  const int64_t bytes = parts_bytes(n, args.heads, args.max_length);
  const bool split = bytes > 0 && bytes <= scratch_bytes();
  const Parts parts = split
                          ? Parts{reinterpret_cast<float*>(scratch(bytes)), static_cast<int>(parts_of(args.max_length))}
                          : Parts{nullptr, 1};
  with_act_type(args.qkv.dtype(), [&]<class T>(T) {
    const auto run = [&]<int kWidth>() {
      TOKAMAK_CHECK(dim / kWidth <= kThreads, "cached_attention with head_dim ", dim);
      args.cap > 0 ? launch_rows<T, kWidth, Cap::kYes>(handle(stream), args, parts)
                   : launch_rows<T, kWidth, Cap::kNo>(handle(stream), args, parts);
    };
    with_vec_width<T>(dim, run, args.qkv.as<T>(), args.cache.as<T>());
    if (!split) return;
    const dim3 grid(static_cast<unsigned>(n), static_cast<unsigned>(args.heads.q_heads));
    launch({"cached_attention, join", grid, kThreads}, handle(stream), join<T>, parts, args.out.as<T>(),
           static_cast<int>(dim));
  });
}

}  // namespace tokamak

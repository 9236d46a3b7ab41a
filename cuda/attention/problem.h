// The arguments of our attention kernels, and the rows of a document that a block works on.
//
// Only the device knows where documents begin, so the grid counts slots: the row blocks (`rows` rows each) of document
// d have the slots from cu[d] / rows + d on. These suffice, as floor(a + b) >= floor(a) + floor(b), with at most one
// slot too many per document. A block whose rows begin past the document's end returns at once.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <limits>

#include "backend/attended.h"
#include "backend/ops.h"
#include "base/math.h"

namespace tokamak::flash {

template <class T>
struct Problem {
  const T* qkv;
  const int32_t* cu_seqlens;
  int documents;
  int q_heads, kv_heads, head_dim;
  float scale;
  TanhCap cap;  // of the scores; limit 0: none
  int64_t tokens;
  int window;  // the largest number if there is none

  template <class Args>
  explicit Problem(const Args& args)
      : qkv(args.qkv.template as<T>()),
        cu_seqlens(args.cu_seqlens.template as<int32_t>()),
        documents(static_cast<int>(args.cu_seqlens.count() - 1)),
        q_heads(static_cast<int>(args.heads.q_heads)),
        kv_heads(static_cast<int>(args.heads.kv_heads)),
        head_dim(static_cast<int>(args.heads.head_dim)),
        scale(args.scale),
        cap(args.cap),
        tokens(args.qkv.dim(0)),
        window(static_cast<int>(effective_window(args.window, args.max_length))) {
    if (window == 0) window = std::numeric_limits<int>::max();
  }

  // A block per slot and head; only grid dimension x is large enough.
  dim3 grid(int rows, int heads) const { return {static_cast<unsigned>((tokens / rows + documents) * heads), 1, 1}; }

  // In elements: the stride between tokens, and the offset of a head within a token.
  __device__ int64_t stride() const { return (q_heads + 2 * int64_t{kv_heads}) * head_dim; }
  __device__ int64_t out_stride() const { return int64_t{q_heads} * head_dim; }
  __device__ int64_t query_at(int head) const { return int64_t{head} * head_dim; }
  __device__ int64_t key_at(int kv_head) const { return (q_heads + int64_t{kv_head}) * head_dim; }
  __device__ int64_t value_at(int kv_head) const { return key_at(kv_head) + kv_width(); }
  __device__ int64_t kv_width() const { return int64_t{kv_heads} * head_dim; }
  __device__ int group() const { return q_heads / kv_heads; }

  // The score of a product of a query and a key, in full f32.
  __device__ float score(float product) const { return cap.limit > 0 ? cap(scale * product) : scale * product; }
  // The derivative of a score by scale q . k.
  __device__ float slope(float score) const { return cap.limit > 0 ? cap.slope(score) : 1.0f; }

  // Whether a query sees no key that lies `before` positions before it: below 0, or from the window on.
  __device__ static bool hidden(int before, int window) {
    return static_cast<unsigned>(before) >= static_cast<unsigned>(window);
  }
  // The first tile of `keys` keys that a query from `query` on sees.
  __device__ int first_tile(int query, int keys) const { return max(query - window + 1, 0) / keys * keys; }
  // No query from here on sees a key up to `key`, in a document of `length` tokens.
  __device__ int end_of_queries(int key, int length) const { return window < length - key ? key + window : length; }
};

// Rows [first, first + kRows) of a document of `length` tokens that starts at token `begin`.
struct Piece {
  int64_t begin;
  int length;
  int first;
  __device__ bool empty() const { return first >= length; }
};

template <int kRows, class T>
__device__ Piece piece_of(const Problem<T>& problem, int slot) {
  const int32_t* cu = problem.cu_seqlens;
  int document = 0;  // the last document whose first slot is at or before this one
  for (int end = problem.documents; end - document > 1;) {
    const int middle = document + (end - document) / 2;
    (cu[middle] / kRows + middle <= slot ? document : end) = middle;
  }
  const int begin = cu[document], slots_before = begin / kRows + document;
  const auto end =
      static_cast<int>(min(int64_t{cu[document + 1]}, problem.tokens));  // so that no contents of cu lead out of bounds
  return {begin, end - begin, (slot - slots_before) * kRows};
}

// The head and the slot of a block. Heads of a slot are adjacent, because they share keys and values in the cache. A
// document's longest row blocks start first: the last ones if queries loop over earlier keys (kLastFirst), the first
// ones if keys loop over later queries.
struct BlockPlace {
  int head, slot;
};
template <bool kLastFirst>
__device__ inline BlockPlace block_place(int heads) {
  const int head = static_cast<int>(blockIdx.x) % heads, slot = static_cast<int>(blockIdx.x) / heads;
  return {head, kLastFirst ? static_cast<int>(gridDim.x) / heads - 1 - slot : slot};
}

}  // namespace tokamak::flash

// Our tensors in cuDNN's terms: documents are a batch, dense or ragged; heads are strides into the packed rows. Pure
// arithmetic, independent of cuDNN.
#pragma once

#include <bit>
#include <compare>
#include <cstdint>
#include <optional>

#include "backend/gpu_sizes.h"
#include "backend/ops.h"

namespace tokamak {

// B consecutive documents. Dense: each has exactly T tokens. Ragged: each has up to T tokens, only the device knows how
// many, and unused slots hold empty documents.
struct DocumentBatch {
  int64_t count = 0;        // B
  int64_t length = 0;       // T
  int64_t most_tokens = 0;  // tokens of all documents together if ragged; 0: dense
  bool ragged() const { return most_tokens > 0; }
  int64_t tokens() const { return ragged() ? most_tokens : count * length; }
  auto operator<=>(const DocumentBatch&) const = default;
};

// The documents of a call if all have one length. Host values decide, so cu_seqlens stays on the device: no document is
// longer than max_length, and together they hold all tokens. The dense case is separate because it masks nothing and
// copies nothing, and because Ampere's deterministic gradient supports nothing else.
inline std::optional<DocumentBatch> uniform_documents(int64_t tokens, int64_t documents, int64_t max_length) {
  if (tokens <= 0 || max_length <= 0 || tokens % max_length != 0) return std::nullopt;
  if (tokens / max_length != documents) return std::nullopt;
  return DocumentBatch{documents, max_length};
}

// Ragged documents, rounded up so that few plans are needed: slots to a power of two, the length to the rows of a tile.
// The latter is free, as cuDNN's blocks are whole tiles.
inline DocumentBatch ragged_documents(int64_t documents, int64_t max_length, int64_t most_tokens) {
  return {static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(documents))), cudnn_length(max_length), most_tokens};
}

inline int64_t most_slots(const DocumentBatch& ragged) {
  return cudnn_most_documents(ragged.most_tokens, ragged.length);
}

// Element (b, h, t, i) is at offset + b batch + h head + t token + i, in elements.
struct HeadStrides {
  int64_t offset = 0;
  int64_t batch = 0, head = 0, token = 0;
  bool operator==(const HeadStrides&) const = default;
};

inline HeadStrides query_strides(const HeadLayout& heads, int64_t length) {  // of qkv and dqkv
  return {0, length * heads.qkv_width(), heads.head_dim, heads.qkv_width()};
}
inline HeadStrides key_strides(const HeadLayout& heads, int64_t length) {
  return {heads.q_width(), length * heads.qkv_width(), heads.head_dim, heads.qkv_width()};
}
inline HeadStrides value_strides(const HeadLayout& heads, int64_t length) {
  return {heads.q_width() + heads.kv_width(), length * heads.qkv_width(), heads.head_dim, heads.qkv_width()};
}
inline HeadStrides own_strides(int64_t heads, int64_t head_dim, int64_t length) {  // (N, heads D)
  return {0, length * heads * head_dim, head_dim, heads * head_dim};
}
inline HeadStrides lse_strides(const DocumentBatch& documents) {  // (Hq, N)
  return {0, documents.length, documents.tokens(), 1};
}
inline HeadStrides packed_lse_strides(const HeadLayout& heads, int64_t length) {  // (B, Hq, T)
  return {0, heads.q_heads * length, length, 1};
}
inline HeadStrides ragged_lse_strides(const HeadLayout& heads, int64_t length) {  // (N, Hq)
  return {0, heads.q_heads * length, 1, heads.q_heads};
}

// cuDNN accesses 16 bytes at a time and does not check the alignment.
inline bool aligned_for_cudnn(const HeadLayout& heads) { return heads.head_dim % 8 == 0; }

}  // namespace tokamak

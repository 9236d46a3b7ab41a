// How our tensors look to cuDNN: documents as a batch, dense or ragged, heads as strides into the packed rows. Pure
// arithmetic, without cuDNN.
#pragma once

#include <bit>
#include <compare>
#include <cstdint>
#include <optional>

#include "backend/ops.h"

namespace tokamak {

// B documents one after another: dense, each of exactly T tokens; or ragged, each of any number up to T, where only the
// device knows how many, and slots that are left over hold empty ones.
struct DocumentBatch {
  int64_t count = 0;        // B
  int64_t length = 0;       // T
  int64_t most_tokens = 0;  // of all together where they are ragged; 0: dense
  bool ragged() const { return most_tokens > 0; }
  int64_t tokens() const { return ragged() ? most_tokens : count * length; }
  auto operator<=>(const DocumentBatch&) const = default;
};

// The documents of a call if all are of one length. No document is longer than max_length and together they hold all
// tokens, so numbers that the host knows decide: cu_seqlens stays on the device. They are no ragged ones because dense
// ones have nothing masked and nothing copied around, and are all that Ampere's deterministic gradient takes.
inline std::optional<DocumentBatch> uniform_documents(int64_t tokens, int64_t documents, int64_t max_length) {
  if (tokens <= 0 || max_length <= 0 || tokens % max_length != 0) return std::nullopt;
  if (tokens / max_length != documents) return std::nullopt;
  return DocumentBatch{documents, max_length};
}

// Any documents: rounded up, so that few plans serve all, to a power of two and to the rows of a tile (which costs
// nothing: cuDNN has blocks for whole tiles).
inline DocumentBatch ragged_documents(int64_t documents, int64_t max_length, int64_t most_tokens) {
  constexpr int64_t kTile = 128;
  return {static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(documents))),
          (max_length + kTile - 1) / kTile * kTile, most_tokens};
}

// The most slots that are asked for. cuDNN has blocks for T tokens of every slot, most of which find nothing to do:
// here up to this many times as many as the tokens want, each for perhaps a thousandth of the time of one that
// computes.
inline int64_t most_slots(const DocumentBatch& ragged) {
  constexpr int64_t kSlotsOfLength = 64;
  const int64_t full = (ragged.most_tokens + ragged.length - 1) / ragged.length;
  return kSlotsOfLength * static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(full)));
}

// Where element (b, h, t, i) lies: offset + b batch + h head + t token + i, in elements.
struct HeadStrides {
  int64_t offset = 0;
  int64_t batch = 0, head = 0, token = 0;
  bool operator==(const HeadStrides&) const = default;
};

inline HeadStrides query_strides(const HeadLayout& heads, int64_t length) {  // of qkv, and of dqkv
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

// cuDNN moves 16 bytes at a time and does not check that it may.
inline bool aligned_for_cudnn(const HeadLayout& heads) { return heads.head_dim % 8 == 0; }

}  // namespace tokamak

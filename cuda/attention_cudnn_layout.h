// How our tensors look to cuDNN: documents of one length as a batch, heads as strides into the packed rows. Pure
// arithmetic, without cuDNN.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>

#include "backend/ops.h"

namespace tokamak {

// B documents of exactly T tokens each.
struct UniformDocuments {
  int64_t count = 0;   // B
  int64_t length = 0;  // T
  int64_t tokens() const { return count * length; }
  auto operator<=>(const UniformDocuments&) const = default;
};

// The documents of a call if all are of one length. No document is longer than max_length and together they hold all
// tokens, so numbers that the host knows decide: cu_seqlens stays on the device.
inline std::optional<UniformDocuments> uniform_documents(int64_t tokens, int64_t documents, int64_t max_length) {
  if (tokens <= 0 || max_length <= 0 || tokens % max_length != 0) return std::nullopt;
  if (tokens / max_length != documents) return std::nullopt;
  return UniformDocuments{documents, max_length};
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
inline HeadStrides out_strides(const HeadLayout& heads, int64_t length) {  // of out, and of dout
  return {0, length * heads.q_width(), heads.head_dim, heads.q_width()};
}
inline HeadStrides lse_strides(const UniformDocuments& documents) {  // (Hq, N)
  return {0, documents.length, documents.tokens(), 1};
}
inline HeadStrides packed_lse_strides(const HeadLayout& heads, int64_t length) {  // (B, Hq, T)
  return {0, heads.q_heads * length, length, 1};
}

// cuDNN moves 16 bytes at a time and does not check that it may.
inline bool aligned_for_cudnn(const HeadLayout& heads) { return heads.head_dim % 8 == 0; }

}  // namespace tokamak

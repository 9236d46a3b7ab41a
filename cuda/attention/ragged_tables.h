// The device tables of ragged documents for cuDNN: the length of each, and its offset in every tensor. Computed on the
// device from cu_seqlens, which the host does not read. Unused slots are empty documents at the end of all tokens. One
// table of lengths serves queries and keys. So none has queries without keys, whose rows cuDNN fills with NaN before
// 9.25 (cudnn-frontend, issue 943); where both are empty, no row is its own.
#pragma once

#include <cuda_runtime.h>

#include <array>

#include "base/host_device.h"
#include "cuda/attention/cudnn_layout.h"

namespace tokamak {

// The tensors that offsets refer to.
enum RaggedRows : int64_t { kQkvRows, kQueryRows, kKeyRows, kLseRows, kRaggedRows };

// One buffer: (rows, B + 1) i64 offsets in elements, since tokens x width passes 2^31; then (B) i32 lengths.
struct RaggedTables {
  int64_t slots = 0;
  int64_t widths[kRaggedRows] = {};

  RaggedTables(const DocumentBatch& documents, const HeadLayout& heads)
      : slots(documents.count), widths{heads.qkv_width(), heads.q_width(), heads.kv_width(), heads.q_heads} {}
  int64_t offsets_at(RaggedRows rows) const { return rows * (slots + 1) * int64_t{sizeof(int64_t)}; }
  int64_t lengths_at() const { return kRaggedRows * (slots + 1) * int64_t{sizeof(int64_t)}; }
  int64_t bytes() const { return lengths_at() + slots * int64_t{sizeof(int32_t)}; }
};

TOKAMAK_HOST_DEVICE inline int64_t ragged_offset(const int32_t* cu_seqlens, int64_t documents, int64_t slot,
                                                 int64_t width) {
  return int64_t{cu_seqlens[slot < documents ? slot : documents]} * width;
}
TOKAMAK_HOST_DEVICE inline int32_t ragged_length(const int32_t* cu_seqlens, int64_t documents, int64_t slot) {
  return slot < documents ? cu_seqlens[slot + 1] - cu_seqlens[slot] : 0;
}

void fill_ragged_tables(cudaStream_t stream, const int32_t* cu_seqlens, int64_t documents, const RaggedTables& tables,
                        std::byte* memory);

}  // namespace tokamak

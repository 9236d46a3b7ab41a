// DocumentTables in memory, and the formulas that the CPU's operation and the CUDA kernel share.
#pragma once

#include <cstdint>

#include "backend/ops.h"
#include "base/host_device.h"

namespace tokamak {

// Positions of the tables' rows, in bytes from their beginning.
struct DocumentTableLayout {
  int64_t entries = 0;  // R
  int64_t widths[DocumentTables::kOffsets] = {};

  DocumentTableLayout(int64_t entries_, const HeadLayout& heads)
      : entries(entries_), widths{heads.qkv_width(), heads.q_width(), heads.kv_width(), heads.q_heads} {}
  int64_t offsets_at(DocumentTables::Offsets rows) const { return rows * entries * int64_t{sizeof(int64_t)}; }
  int64_t lengths_at() const { return DocumentTables::kOffsets * entries * int64_t{sizeof(int64_t)}; }
  int64_t bytes() const { return lengths_at() + entries * int64_t{sizeof(int32_t)}; }
};

// Offsets are i64, because tokens times width may exceed 2^31.
TOKAMAK_HOST_DEVICE inline int64_t document_offset(const int32_t* cu_seqlens, int64_t documents, int64_t entry,
                                                   int64_t width) {
  return int64_t{cu_seqlens[entry < documents ? entry : documents]} * width;
}
TOKAMAK_HOST_DEVICE inline int32_t document_length(const int32_t* cu_seqlens, int64_t documents, int64_t entry) {
  return entry < documents ? cu_seqlens[entry + 1] - cu_seqlens[entry] : 0;
}

}  // namespace tokamak

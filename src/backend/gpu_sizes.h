// GPU memory that a run takes besides its buffers, and the size of the head's chunks. It is pure arithmetic, so a
// program without CUDA makes the same plan for a GPU.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "backend/ops.h"
#include "backend/options.h"
#include "tensor/dtype.h"

namespace tokamak {

// The CUDA context and the libraries' handles: 539 MiB on an H100 with driver 580 (scripts/gpu_check.sh).
inline constexpr int64_t kGpuStartupBytes = int64_t{640} << 20;
// Lazily loaded code (ours, cuBLASLt's, cuDNN's compiled kernels), captured graphs, and autotune's temporary memory.
inline constexpr int64_t kGpuReserveBytes = int64_t{1} << 30;
inline constexpr int64_t kGpuGemmWorkspaceBytes = int64_t{32} << 20;
inline constexpr int64_t kGpuLogitsShare = 24;  // the head's logits may use 1/24 of the memory: 3.3 of 80 GiB
inline constexpr int64_t kPlannedGpuMemory = int64_t{80} << 30;  // assumed if there is no GPU: an H100's

// The most rows of a tile in cuDNN's attention. cuDNN may load a document's last tile whole. A NaN in a row behind the
// document survives a weight of zero (cudnn-frontend, issue 624). Our own kernels load nothing behind a document.
inline constexpr int64_t kCudnnTileRows = 128;
// Ops::rows_behind_attention. The value does not depend on whether cuDNN is installed, so that every machine makes the
// same plan.
inline int64_t gpu_rows_behind_attention(AttentionKind kind) {
  return kind == AttentionKind::kNative ? 0 : kCudnnTileRows;
}

// The maximum number of documents, up to `length` tokens each, that cuDNN's attention takes in one call. cuDNN launches
// blocks for `length` tokens of every document, and most blocks exit at once. The limit allows kDocumentsOfLength times
// the blocks that the tokens need. An empty block takes about a thousandth of the time of a full one.
inline int64_t cudnn_most_documents(int64_t tokens, int64_t length) {
  constexpr int64_t kDocumentsOfLength = 64;
  const int64_t full = (tokens + length - 1) / length;
  return kDocumentsOfLength * static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(full)));
}
// cuDNN's blocks are whole tiles.
inline int64_t cudnn_length(int64_t max_length) {
  return (max_length + kCudnnTileRows - 1) / kCudnnTileRows * kCudnnTileRows;
}
// The entries of DocumentTables for `documents` documents and their end. cudnn-frontend declares
// tensors as aligned to 16 bytes, so rows are multiples of 4 elements.
inline int64_t document_entries(int64_t documents) { return (documents + 1 + 3) / 4 * 4; }
// Ops::document_table_entries; the value does not depend on whether cuDNN is installed.
inline int64_t gpu_document_table_entries(AttentionKind kind, const Workload& workload) {
  if (kind == AttentionKind::kNative || workload.compute != DType::kBF16) return 0;
  if (workload.tokens <= 0 || workload.max_length <= 0) return 0;
  return document_entries(cudnn_most_documents(workload.tokens, cudnn_length(workload.max_length)));
}

// The scratch memory of one call of linear_cross_entropy: the logits, which become dlogits, and from byte `z_losses`
// on the z-losses of the tokens.
struct GpuHeadScratch {
  int64_t rows;      // of a full chunk; logits are (rows, V) act
  int64_t z_losses;  // (N) f32
  int64_t bytes;     // of logits and z-losses together

  GpuHeadScratch(int64_t tokens, int64_t vocab, DType act, int64_t budget)
      : rows(chunk_rows(tokens, vocab, act, budget)),
        z_losses(round_up(rows * vocab * size_of(act))),
        bytes(z_losses + tokens * size_of(DType::kF32)) {}

  // The GEMM for dweight moves 8 V C bytes per chunk for 2 V C rows FLOPs. A GPU computes about 300 FLOPs per byte of
  // traffic, so the memory limit for logits decides the number of chunks. On 80 GiB it allows some 13 000 rows
  // in bf16 for a vocabulary of 128k. All chunks have one size, at least two GEMM tiles.
  static constexpr int64_t kMinRows = 256, kRowStep = 128;
  static int64_t chunk_rows(int64_t tokens, int64_t vocab, DType act, int64_t logits_bytes) {
    const int64_t row = std::max<int64_t>(1, vocab) * size_of(act);
    const int64_t most = std::max(kMinRows, logits_bytes / row / kRowStep * kRowStep);
    const int64_t chunks = std::max<int64_t>(1, (tokens + most - 1) / most);
    return std::min(tokens, ((tokens + chunks - 1) / chunks + kRowStep - 1) / kRowStep * kRowStep);
  }
  static int64_t round_up(int64_t bytes) { return (bytes + 255) / 256 * 256; }
};

}  // namespace tokamak

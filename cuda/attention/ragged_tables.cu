// A few kilobytes: bound by launch latency.
#include "cuda/attention/ragged_tables.h"

#include "cuda/launch.h"

namespace tokamak {
namespace {

constexpr int kThreads = 128;

// One thread per slot, and one for the end.
__global__ void fill(const int32_t* cu_seqlens, int64_t documents, RaggedTables tables, int64_t* offsets,
                     int32_t* lengths) {
  const int64_t slot = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (slot > tables.slots) return;
  for (int rows = 0; rows < kRaggedRows; ++rows) {
    offsets[rows * (tables.slots + 1) + slot] = ragged_offset(cu_seqlens, documents, slot, tables.widths[rows]);
  }
  if (slot < tables.slots) lengths[slot] = ragged_length(cu_seqlens, documents, slot);
}

}  // namespace

void fill_ragged_tables(cudaStream_t stream, const int32_t* cu_seqlens, int64_t documents, const RaggedTables& tables,
                        std::byte* memory) {
  launch({"ragged_tables", {blocks_for(tables.slots + 1, kThreads)}, kThreads}, stream, fill, cu_seqlens, documents,
         tables, reinterpret_cast<int64_t*>(memory), reinterpret_cast<int32_t*>(memory + tables.lengths_at()));
}

}  // namespace tokamak

// A few kilobytes: bound by launch latency.
#include "cuda/attention/ragged_tables.h"

#include "cuda/cuda_ops.h"
#include "cuda/device.h"
#include "cuda/launch.h"

namespace tokamak {
namespace {

constexpr int kThreads = 128;

// One thread per entry.
__global__ void fill(const int32_t* cu_seqlens, int64_t documents, DocumentTableLayout layout, int64_t* offsets,
                     int32_t* lengths) {
  const int64_t entry = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (entry >= layout.entries) return;
  for (int rows = 0; rows < DocumentTables::kOffsets; ++rows) {
    offsets[rows * layout.entries + entry] = document_offset(cu_seqlens, documents, entry, layout.widths[rows]);
  }
  lengths[entry] = document_length(cu_seqlens, documents, entry);
}

}  // namespace

void fill_ragged_tables(cudaStream_t stream, const Tensor& cu_seqlens, const DocumentTableLayout& layout,
                        void* memory) {
  auto* bytes = static_cast<std::byte*>(memory);
  launch({"ragged_tables", {blocks_for(layout.entries, kThreads)}, kThreads}, stream, fill, cu_seqlens.as<int32_t>(),
         cu_seqlens.count() - 1, layout, reinterpret_cast<int64_t*>(bytes),
         reinterpret_cast<int32_t*>(bytes + layout.lengths_at()));
}

void CudaOps::do_document_tables(Stream& stream, const DocumentTables& args) {
  fill_ragged_tables(handle(stream), args.cu_seqlens, {args.tables.dim(1), args.heads}, args.tables.data());
}

}  // namespace tokamak

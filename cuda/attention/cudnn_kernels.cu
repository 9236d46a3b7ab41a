// The kernels for lse and tables move a few kilobytes and are bound by launch latency. Those for keys are memory-bound
// copies of 16 bytes per thread, with adjacent threads on adjacent addresses.
#include "cuda/attention/cudnn_kernels.h"

#include "cuda/cuda_ops.h"
#include "cuda/device.h"
#include "cuda/launch.h"
#include "cuda/vec.h"

namespace tokamak {
namespace {

constexpr int kThreads = 256, kTableThreads = 128;

// One thread per element of `to`, and per zero behind it.
__global__ void transpose_lse(const float* from, float* to, int64_t a, int64_t b, int64_t inner, int64_t zeros) {
  const int64_t n = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (n >= a * b * inner + zeros) return;
  if (n >= a * b * inner) {
    to[n] = 0;
    return;
  }
  const int64_t i = n % inner, outer = n / inner;
  to[n] = from[(outer % a * b + outer / a) * inner + i];
}

// In units of 16 bytes: the length of a row, and the offset of its keys.
struct Widths {
  int64_t row, queries, keys;
};

// y: 0 for keys, 1 for values.
template <bool kGather>
__global__ void copy(uint4* rows, uint4* keys, uint4* values, int64_t tokens, int64_t zero_rows, Widths width) {
  const int64_t n = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (n >= (tokens + zero_rows) * width.keys) return;
  uint4* own = blockIdx.y == 0 ? keys : values;
  if (n >= tokens * width.keys) {
    own[n] = uint4{0, 0, 0, 0};
    return;
  }
  uint4* row = rows + n / width.keys * width.row + width.queries + blockIdx.y * width.keys + n % width.keys;
  if constexpr (kGather) {
    own[n] = *row;
  } else {
    *row = own[n];
  }
}

template <bool kGather>
void copy_keys(cudaStream_t stream, const Tensor& qkv, const HeadLayout& heads, void* keys, void* values,
               int64_t zero_rows) {
  constexpr int64_t kWidth = kVecWidth<bf16>;
  const Widths width{heads.qkv_width() / kWidth, heads.q_width() / kWidth, heads.kv_width() / kWidth};
  launch({"own_keys", {blocks_for((qkv.dim(0) + zero_rows) * width.keys, kThreads), 2}, kThreads}, stream,
         copy<kGather>, static_cast<uint4*>(qkv.data()), static_cast<uint4*>(keys), static_cast<uint4*>(values),
         qkv.dim(0), zero_rows, width);
}

// One thread per entry.
__global__ void fill(const int32_t* cu_seqlens, int64_t documents, DocumentTableLayout layout, int64_t* offsets,
                     int32_t* lengths) {
  const int64_t entry = int64_t{blockIdx.x} * kTableThreads + threadIdx.x;
  if (entry >= layout.entries) return;
  for (int rows = 0; rows < DocumentTables::kOffsets; ++rows) {
    offsets[rows * layout.entries + entry] = document_offset(cu_seqlens, documents, entry, layout.widths[rows]);
  }
  lengths[entry] = document_length(cu_seqlens, documents, entry);
}

}  // namespace

void pack_lse(cudaStream_t stream, const float* from, float* to, int64_t a, int64_t b, int64_t inner, int64_t zeros) {
  launch({"pack_lse", {blocks_for(a * b * inner + zeros, kThreads)}, kThreads}, stream, transpose_lse, from, to, a, b,
         inner, zeros);
}

void gather_keys(cudaStream_t stream, const Tensor& qkv, const HeadLayout& heads, void* keys, void* values,
                 int64_t zero_rows) {
  copy_keys<true>(stream, qkv, heads, keys, values, zero_rows);
}

void scatter_keys(cudaStream_t stream, const void* keys, const void* values, const HeadLayout& heads,
                  const Tensor& qkv) {
  copy_keys<false>(stream, qkv, heads, const_cast<void*>(keys), const_cast<void*>(values), 0);
}

void fill_ragged_tables(cudaStream_t stream, const Tensor& cu_seqlens, const DocumentTableLayout& layout,
                        void* memory) {
  auto* bytes = static_cast<std::byte*>(memory);
  launch({"ragged_tables", {blocks_for(layout.entries, kTableThreads)}, kTableThreads}, stream, fill,
         cu_seqlens.as<int32_t>(), cu_seqlens.count() - 1, layout, reinterpret_cast<int64_t*>(bytes),
         reinterpret_cast<int32_t*>(bytes + layout.lengths_at()));
}

void CudaOps::do_document_tables(Stream& stream, const DocumentTables& args) {
  fill_ragged_tables(handle(stream), args.cu_seqlens, {args.tables.dim(1), args.heads}, args.tables.data());
}

}  // namespace tokamak

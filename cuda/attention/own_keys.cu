// Memory-bound copies: 16 bytes per thread, adjacent threads on adjacent addresses.
#include "cuda/attention/own_keys.h"

#include "cuda/launch.h"
#include "cuda/vec.h"

namespace tokamak {
namespace {

constexpr int kThreads = 256;

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

}  // namespace

void gather_keys(cudaStream_t stream, const Tensor& qkv, const HeadLayout& heads, void* keys, void* values,
                 int64_t zero_rows) {
  copy_keys<true>(stream, qkv, heads, keys, values, zero_rows);
}

void scatter_keys(cudaStream_t stream, const void* keys, const void* values, const HeadLayout& heads,
                  const Tensor& qkv) {
  copy_keys<false>(stream, qkv, heads, const_cast<void*>(keys), const_cast<void*>(values), 0);
}

}  // namespace tokamak

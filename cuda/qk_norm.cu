// RMSNorm of the queries, then of the keys, as rows of rmsnorm.cu. Values are copied if the output is another
// tensor.
#include "cuda/cuda_ops.h"
#include "cuda/device.h"
#include "cuda/launch.h"
#include "cuda/rmsnorm.h"
#include "cuda/vec.h"

namespace tokamak {
namespace {

constexpr int kThreads = 128;

// Copies elements [begin, end) of each row; one block per row.
template <class T, int kWidth>
__global__ void copy_columns(const T* __restrict__ from, T* __restrict__ to, int64_t width, int64_t begin,
                             int64_t end) {
  const int64_t row = int64_t{blockIdx.x} * width;
  for (int64_t c = begin + int64_t{threadIdx.x} * kWidth; c < end; c += kThreads * kWidth) {
    store_packed<kWidth>(to + row + c, load_packed<kWidth>(from + row + c));
  }
}

struct BothRows {
  BothRows(const HeadLayout& heads, HeadNorm over, int64_t tokens)
      : queries(rows_of(heads, over, heads.q_heads, tokens)), keys(rows_of(heads, over, heads.kv_heads, tokens)) {}
  NormRows queries, keys;

 private:
  static NormRows rows_of(const HeadLayout& heads, HeadNorm over, int64_t count, int64_t tokens) {
    if (over == HeadNorm::kTogether) return {tokens, count * heads.head_dim, heads.qkv_width()};
    return {tokens * count, heads.head_dim, heads.qkv_width(), static_cast<uint32_t>(count)};
  }
};

}  // namespace

int64_t qk_norm_backward_scratch(const Workload& workload) {
  const BothRows rows(workload.heads, workload.head_norm, workload.tokens);
  return norm_parts_bytes(rows.queries.count, rows.queries.width);
}

void CudaOps::do_qk_norm(Stream& stream, const QkNorm& args) {
  const HeadLayout& heads = args.heads;
  const int64_t tokens = args.qkv.dim(0), keys_at = heads.q_width(), values_at = keys_at + heads.kv_width();
  const BothRows rows(heads, args.over, tokens);
  with_act_type(args.qkv.dtype(), [&]<class T>(T) {
    const T* qkv = args.qkv.as<T>();
    T* out = args.out.as<T>();
    const auto normalise = [&](const NormRows& which, int64_t at, const Tensor& weight, float* rstd) {
      rmsnorm_rows<T>(handle(stream), {.x = qkv + at,
                                       .weight = weight.as<T>(),
                                       .y = out + at,
                                       .rstd = rstd,
                                       .rows = which,
                                       .eps = args.eps,
                                       .offset = args.offset});
    };
    normalise(rows.queries, 0, args.q_weight, args.rstd.as<float>());
    normalise(rows.keys, keys_at, args.k_weight, args.rstd.as<float>() + rows.queries.count);
    if (out == qkv) return;
    const auto copy = [&]<int kWidth>() {
      launch({"qk_norm, values", static_cast<unsigned>(tokens), kThreads}, handle(stream), copy_columns<T, kWidth>, qkv,
             out, heads.qkv_width(), values_at, heads.qkv_width());
    };
    with_vec_width<T>(heads.head_dim, copy, qkv, out);
  });
}

void CudaOps::do_qk_norm_backward(Stream& stream, const QkNormBackward& args) {
  const HeadLayout& heads = args.heads;
  const BothRows rows(heads, args.over, args.qkv.dim(0));
  // The keys' partial sums reuse the memory of the queries': their kernels are ordered on the stream.
  auto* parts = reinterpret_cast<float*>(scratch(norm_parts_bytes(rows.queries.count, rows.queries.width)));
  with_act_type(args.qkv.dtype(), [&]<class T>(T) {
    const auto backward = [&](const NormRows& which, int64_t at, const Tensor& weight, const float* rstd,
                              const Tensor& dweight) {
      rmsnorm_backward_rows<T>(handle(stream),
                               {.dy = args.dqkv.as<T>() + at,
                                .x = args.qkv.as<T>() + at,
                                .weight = weight.as<T>(),
                                .rstd = rstd,
                                .dresidual = nullptr,
                                .dx = args.dqkv.as<T>() + at,
                                .parts = parts,
                                .rows = which,
                                .offset = args.offset},
                               dweight.as<float>());
    };
    backward(rows.queries, 0, args.q_weight, args.rstd.as<float>(), args.dq_weight);
    backward(rows.keys, heads.q_width(), args.k_weight, args.rstd.as<float>() + rows.queries.count, args.dk_weight);
  });
}

}  // namespace tokamak

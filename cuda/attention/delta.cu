// delta_t = dout_t . out_t for each query head: the term that the softmax gradient subtracts. Reads out and dout once:
// 4 D bytes per 4 bytes of output in bf16, so it is memory-bound.
#include "cuda/attention/native.h"
#include "cuda/launch.h"
#include "cuda/reduce.h"
#include "cuda/vec.h"

namespace tokamak::flash {
namespace {

constexpr int kThreads = 256, kTokens = kThreads / kWarp;

// Block (x, y) has head y and tokens from x kTokens on, one warp per token. Rows are (N, Hq), delta is (Hq, N).
template <class T, int kWidth>
__global__ void __launch_bounds__(kThreads)
    row_products(const T* out, const T* dout, float* delta, int64_t tokens, int head_dim) {
  const int64_t token = int64_t{blockIdx.x} * kTokens + warp();
  if (token >= tokens) return;
  const int64_t row = (token * gridDim.y + blockIdx.y) * head_dim;
  float sum = 0;
  for (int i = lane() * kWidth; i < head_dim; i += kWarp * kWidth) {
    const auto x = load<kWidth>(out + row + i), y = load<kWidth>(dout + row + i);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) sum += x[k] * y[k];
  }
  sum = warp_sum(sum);
  if (lane() == 0) delta[blockIdx.y * tokens + token] = sum;
}

}  // namespace

void sum_delta(cudaStream_t stream, const AttentionBackward& args, float* delta) {
  const int64_t tokens = args.qkv.dim(0), dim = args.heads.head_dim;
  const dim3 grid = {blocks_for(tokens, kTokens), static_cast<unsigned>(args.heads.q_heads), 1};
  with_act_type(args.qkv.dtype(), [&]<class T>(T) {
    with_vec_width<T>(dim, [&]<int kWidth>() {
      launch({"attention_delta", grid, kThreads}, stream, row_products<T, kWidth>, args.out.as<T>(), args.dout.as<T>(),
             delta, tokens, static_cast<int>(dim));
    });
  });
}

}  // namespace tokamak::flash

// RMSNorm of each query and key head. The gradients of the two weights are sums over all tokens and heads. They are
// computed over a fixed partition of the tokens and added in order, for any number of threads.
#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/partition.h"
#include "backend/cpu/rmsnorm_row.h"

namespace tokamak {
namespace {

// The heads that share a weight: their offsets in a token's row and in rstd.
struct Heads {
  int64_t count;
  int64_t at;   // offset in the row, in elements
  float* rstd;  // (N, count)
};

struct BothHeads {
  BothHeads(const HeadLayout& heads, int64_t tokens, const Tensor& rstd)
      : queries{heads.q_heads, 0, rstd.as<float>()},
        keys{heads.kv_heads, heads.q_width(), rstd.as<float>() + tokens * heads.q_heads} {}
  Heads queries, keys;
};

template <class T>
void normalise(const Heads& heads, int64_t head_dim, int64_t token, float eps, const T* qkv, const T* weight, T* out) {
  for (int64_t h = 0; h < heads.count; ++h) {
    const int64_t at = heads.at + h * head_dim;
    float& rstd = heads.rstd[token * heads.count + h];
    rstd = rstd_of(qkv + at, head_dim, eps);
    scale(qkv + at, weight, rstd, out + at, head_dim);
  }
}

template <class T>
void normalise_backward(const Heads& heads, int64_t head_dim, int64_t token, const T* qkv, const T* weight, T* dqkv,
                        float* dweight) {
  for (int64_t h = 0; h < heads.count; ++h) {
    const int64_t at = heads.at + h * head_dim;
    const float rstd = heads.rstd[token * heads.count + h];
    backward_row<T>({dqkv + at, qkv + at, weight, nullptr, dqkv + at, dweight, rstd}, head_dim);
  }
}

}  // namespace

int64_t qk_norm_backward_workspace(const Workload& workload) {
  return 2 * kMaxRowBlocks * workload.heads.head_dim * size_of(DType::kF32);
}

void CpuOps::do_qk_norm(Stream&, const QkNorm& args) {
  const int64_t tokens = args.qkv.dim(0), width = args.heads.qkv_width(), head_dim = args.heads.head_dim;
  const int64_t values_at = args.heads.q_width() + args.heads.kv_width();
  const BothHeads heads(args.heads, tokens, args.rstd);
  with_act_type(args.qkv.dtype(), [&]<class T>(T) {
    const T* q_weight = args.q_weight.as<T>();
    const T* k_weight = args.k_weight.as<T>();
    parallel_for(tokens, row_grain(width), [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const T* qkv = args.qkv.as<T>() + n * width;
        T* out = args.out.as<T>() + n * width;
        normalise(heads.queries, head_dim, n, args.eps, qkv, q_weight, out);
        normalise(heads.keys, head_dim, n, args.eps, qkv, k_weight, out);
        if (out != qkv) std::copy(qkv + values_at, qkv + width, out + values_at);
      }
    });
  });
}

void CpuOps::do_qk_norm_backward(Stream&, const QkNormBackward& args) {
  const int64_t tokens = args.qkv.dim(0), width = args.heads.qkv_width(), head_dim = args.heads.head_dim;
  const int64_t block = rows_per_block(tokens), blocks = (tokens + block - 1) / block;
  auto* q_partial = scratch<float>(workspace(), 2 * blocks * head_dim);
  auto* k_partial = q_partial + blocks * head_dim;
  const BothHeads heads(args.heads, tokens, args.rstd);
  with_act_type(args.qkv.dtype(), [&]<class T>(T) {
    const T* q_weight = args.q_weight.as<T>();
    const T* k_weight = args.k_weight.as<T>();
    parallel_for(blocks, 1, [&](int64_t first, int64_t last) {
      for (int64_t b = first; b < last; ++b) {
        float* dq_weight = q_partial + b * head_dim;
        float* dk_weight = k_partial + b * head_dim;
        std::fill(dq_weight, dq_weight + head_dim, 0.0f);
        std::fill(dk_weight, dk_weight + head_dim, 0.0f);
        for (int64_t n = b * block; n < std::min(tokens, (b + 1) * block); ++n) {
          const T* qkv = args.qkv.as<T>() + n * width;
          T* dqkv = args.dqkv.as<T>() + n * width;
          normalise_backward(heads.queries, head_dim, n, qkv, q_weight, dqkv, dq_weight);
          normalise_backward(heads.keys, head_dim, n, qkv, k_weight, dqkv, dk_weight);
        }
      }
    });
  });
  add_columns(q_partial, blocks, head_dim, args.dq_weight.as<float>());
  add_columns(k_partial, blocks, head_dim, args.dk_weight.as<float>());
}

}  // namespace tokamak

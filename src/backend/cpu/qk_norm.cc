// RMSNorm of queries and keys. The gradients of the two weights are sums over all tokens and heads. They are
// computed over a fixed partition of the tokens and added in order, for any number of threads.
#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/partition.h"
#include "backend/cpu/rmsnorm_row.h"

namespace tokamak {
namespace {

// The rows of each token that share a weight: the heads of queries or of keys, or one row of them all.
struct NormRows {
  int64_t count, width;
  int64_t at;    // of the first one in the token's row of qkv, in elements
  float* rstd;   // (N, count)
  float offset;  // of the weight
};

template <class Args>
NormRows query_norms(const Args& args) {
  const HeadLayout& heads = args.heads;
  auto* rstd = args.rstd.template as<float>();
  return args.over == HeadNorm::kEach ? NormRows{heads.q_heads, heads.head_dim, 0, rstd, args.offset}
                                      : NormRows{1, heads.q_width(), 0, rstd, args.offset};
}

template <class Args>
NormRows key_norms(const Args& args) {
  const HeadLayout& heads = args.heads;
  auto* rstd = args.rstd.template as<float>() + args.qkv.dim(0) * query_norms(args).count;
  return args.over == HeadNorm::kEach ? NormRows{heads.kv_heads, heads.head_dim, heads.q_width(), rstd, args.offset}
                                      : NormRows{1, heads.kv_width(), heads.q_width(), rstd, args.offset};
}

template <class T>
void normalise(const NormRows& rows, int64_t token, float eps, const T* qkv, const T* weight, T* out) {
  for (int64_t h = 0; h < rows.count; ++h) {
    const int64_t at = rows.at + h * rows.width;
    float& rstd = rows.rstd[token * rows.count + h];
    rstd = rstd_of(qkv + at, rows.width, eps);
    scale(qkv + at, weight, rows.offset, rstd, out + at, rows.width);
  }
}

template <class T>
void normalise_backward(const NormRows& rows, int64_t token, const T* qkv, const T* weight, T* dqkv, float* dweight) {
  for (int64_t h = 0; h < rows.count; ++h) {
    const int64_t at = rows.at + h * rows.width;
    const float rstd = rows.rstd[token * rows.count + h];
    backward_row<T>({dqkv + at, qkv + at, weight, nullptr, dqkv + at, dweight, rstd, rows.offset}, rows.width);
  }
}

}  // namespace

int64_t qk_norm_backward_workspace(const Workload& workload) {
  const HeadLayout& heads = workload.heads;
  const int64_t weights =
      workload.head_norm == HeadNorm::kEach ? 2 * heads.head_dim : heads.q_width() + heads.kv_width();
  return kMaxRowBlocks * weights * size_of(DType::kF32);
}

void CpuOps::do_qk_norm(Stream&, const QkNorm& args) {
  const int64_t tokens = args.qkv.dim(0), width = args.heads.qkv_width();
  const int64_t values_at = args.heads.q_width() + args.heads.kv_width();
  const NormRows queries = query_norms(args), keys = key_norms(args);
  with_act_type(args.qkv.dtype(), [&]<class T>(T) {
    const T* q_weight = args.q_weight.as<T>();
    const T* k_weight = args.k_weight.as<T>();
    parallel_for(tokens, row_grain(width), [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const T* qkv = args.qkv.as<T>() + n * width;
        T* out = args.out.as<T>() + n * width;
        normalise(queries, n, args.eps, qkv, q_weight, out);
        normalise(keys, n, args.eps, qkv, k_weight, out);
        if (out != qkv) std::copy(qkv + values_at, qkv + width, out + values_at);
      }
    });
  });
}

void CpuOps::do_qk_norm_backward(Stream&, const QkNormBackward& args) {
  const int64_t tokens = args.qkv.dim(0), width = args.heads.qkv_width();
  const int64_t block = rows_per_block(tokens), blocks = (tokens + block - 1) / block;
  const NormRows queries = query_norms(args), keys = key_norms(args);
  auto* q_partial = scratch<float>(workspace(), blocks * (queries.width + keys.width));
  auto* k_partial = q_partial + blocks * queries.width;
  with_act_type(args.qkv.dtype(), [&]<class T>(T) {
    const T* q_weight = args.q_weight.as<T>();
    const T* k_weight = args.k_weight.as<T>();
    parallel_for(blocks, 1, [&](int64_t first, int64_t last) {
      for (int64_t b = first; b < last; ++b) {
        float* dq_weight = q_partial + b * queries.width;
        float* dk_weight = k_partial + b * keys.width;
        std::fill(dq_weight, dq_weight + queries.width, 0.0f);
        std::fill(dk_weight, dk_weight + keys.width, 0.0f);
        for (int64_t n = b * block; n < std::min(tokens, (b + 1) * block); ++n) {
          const T* qkv = args.qkv.as<T>() + n * width;
          T* dqkv = args.dqkv.as<T>() + n * width;
          normalise_backward(queries, n, qkv, q_weight, dqkv, dq_weight);
          normalise_backward(keys, n, qkv, k_weight, dqkv, dk_weight);
        }
      }
    });
  });
  add_columns(q_partial, blocks, queries.width, args.dq_weight.as<float>());
  add_columns(k_partial, blocks, keys.width, args.dk_weight.as<float>());
}

}  // namespace tokamak

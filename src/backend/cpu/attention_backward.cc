// Attention, backward.
#include <cmath>
#include <vector>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/workspace.h"
#include "base/parallel_for.h"

namespace tokamak {

namespace {

template <class T>
void backward(const AttentionBackward& args) {
  const HeadLayout& heads = args.heads;
  const int64_t tokens = args.qkv.dim(0), width = heads.qkv_width(), dim = heads.head_dim;
  const int64_t group = heads.q_heads / heads.kv_heads;
  const T *qkv = args.qkv.as<T>(), *out = args.out.as<T>(), *dout = args.dout.as<T>();
  const auto* cu = args.cu_seqlens.as<int32_t>();
  std::vector<double> d(static_cast<size_t>(tokens * width));
  for (int64_t n = 0; n + 1 < args.cu_seqlens.count(); ++n) {
    for (int64_t h = 0; h < heads.q_heads; ++h) {
      const int64_t k0 = heads.q_width() + h / group * dim, v0 = k0 + heads.kv_width();
      for (int64_t t = cu[n]; t < cu[n + 1]; ++t) {
        const int64_t row = t * heads.q_width() + h * dim;
        double delta = 0;
        for (int64_t i = 0; i < dim; ++i) delta += to_float(out[row + i]) * to_float(dout[row + i]);
        for (int64_t s = cu[n]; s <= t; ++s) {
          double x = 0, dp = 0;
          for (int64_t i = 0; i < dim; ++i) {
            x += to_float(qkv[t * width + h * dim + i]) * to_float(qkv[s * width + k0 + i]);
            dp += to_float(dout[row + i]) * to_float(qkv[s * width + v0 + i]);
          }
          const double p = std::exp(x * args.scale - args.lse.as<float>()[h * tokens + t]);
          const double ds = p * (dp - delta) * args.scale;
          for (int64_t i = 0; i < dim; ++i) {
            d[static_cast<size_t>(t * width + h * dim + i)] += ds * to_float(qkv[s * width + k0 + i]);
            d[static_cast<size_t>(s * width + k0 + i)] += ds * to_float(qkv[t * width + h * dim + i]);
            d[static_cast<size_t>(s * width + v0 + i)] += p * to_float(dout[row + i]);
          }
        }
      }
    }
  }
  for (size_t i = 0; i < d.size(); ++i) args.dqkv.as<T>()[i] = from_float<T>(static_cast<float>(d[i]));
}

}  // namespace

int64_t attention_backward_workspace(const Workload&) { return 0; }

void CpuOps::do_attention_backward(Stream&, const AttentionBackward& args) {
  args.qkv.dtype() == DType::kBF16 ? backward<bf16>(args) : backward<float>(args);
}

}  // namespace tokamak

// Attention, forward.
#include <cmath>
#include <vector>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/workspace.h"
#include "base/parallel_for.h"

namespace tokamak {

namespace {

template <class T>
void forward(const Attention& args) {
  const HeadLayout& heads = args.heads;
  const int64_t tokens = args.qkv.dim(0), width = heads.qkv_width(), dim = heads.head_dim;
  const T* qkv = args.qkv.as<T>();
  const auto* cu = args.cu_seqlens.as<int32_t>();
  for (int64_t d = 0; d + 1 < args.cu_seqlens.count(); ++d) {
    parallel_for(heads.q_heads, 1, [&](int64_t first, int64_t last) {
      std::vector<double> p(static_cast<size_t>(cu[d + 1] - cu[d]));
      for (int64_t h = first; h < last; ++h) {
        const int64_t k0 = heads.q_width() + h / (heads.q_heads / heads.kv_heads) * dim;
        for (int64_t t = cu[d]; t < cu[d + 1]; ++t) {
          double sum = 0;
          for (int64_t s = cu[d]; s <= t; ++s) {
            double x = 0;
            for (int64_t i = 0; i < dim; ++i)
              x += to_float(qkv[t * width + h * dim + i]) * to_float(qkv[s * width + k0 + i]);
            sum += p[static_cast<size_t>(s - cu[d])] = std::exp(x * args.scale);
          }
          args.lse.as<float>()[h * tokens + t] = static_cast<float>(std::log(sum));
          for (int64_t i = 0; i < dim; ++i) {
            double o = 0;
            for (int64_t s = cu[d]; s <= t; ++s) {
              o += p[static_cast<size_t>(s - cu[d])] * to_float(qkv[s * width + k0 + heads.kv_width() + i]);
            }
            args.out.as<T>()[t * heads.q_width() + h * dim + i] = from_float<T>(static_cast<float>(o / sum));
          }
        }
      }
    });
  }
}

}  // namespace

int64_t attention_workspace(const Workload&) { return 0; }

void CpuOps::do_attention(Stream&, const Attention& args) {
  args.qkv.dtype() == DType::kBF16 ? forward<bf16>(args) : forward<float>(args);
}

}  // namespace tokamak

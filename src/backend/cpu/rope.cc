// Rotary position embedding, in place on the query and key heads. The inverse is the rotation by the opposite angle.
#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/partition.h"
#include "backend/formulas.h"
#include "base/error.h"

namespace tokamak {
namespace {

// Rotates each (a_i, b_i) of one head; `sign` is the sign of the angle.
template <class T>
void rotate(T* a, T* b, const float* cosine, const float* sine, float sign, int64_t half) {
#pragma omp simd
  for (int64_t i = 0; i < half; ++i) {
    const RopePair turned = rotated({to_float(a[i]), to_float(b[i])}, cosine[i], sign * sine[i]);
    a[i] = from_float<T>(turned.a);
    b[i] = from_float<T>(turned.b);
  }
}

}  // namespace

void CpuOps::do_rope(Stream&, const Rope& args) {
  const int64_t tokens = args.positions.count(), head_dim = args.heads.head_dim, width = args.heads.qkv_width();
  const int64_t rotated_heads = args.heads.q_heads + args.heads.kv_heads, half = head_dim / 2;
  const float sign = args.rotation == Rotation::kForward ? 1.0f : -1.0f;
  const auto* positions = args.positions.as<int32_t>();
  const auto* table = args.table.as<float>();
  for (int64_t n = 0; n < tokens; ++n) {
    TOKAMAK_CHECK(0 <= positions[n] && positions[n] < args.table.dim(0), "token ", n, " at position ", positions[n],
                  ", table of ", args.table.dim(0));
  }
  with_act_type(args.qkv.dtype(), [&]<class T>(T) {
    T* qkv = args.qkv.as<T>();
    parallel_for(tokens, row_grain(width), [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const float* cosine = table + positions[n] * head_dim;
        for (int64_t h = 0; h < rotated_heads; ++h) {
          T* head = qkv + n * width + h * head_dim;
          rotate(head, head + half, cosine, cosine + half, sign, half);
        }
      }
    });
  });
}

}  // namespace tokamak

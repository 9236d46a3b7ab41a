// How products of queries and keys become scores in attention's kernels.
#pragma once

#include "base/math.h"
#include "cuda/ptx.h"

namespace tokamak::flash {

enum class Cap { kNo, kYes };

// Products of queries and keys to scores times log2(e): scale x, or cap tanh(scale x / cap) within 2^-21 cap. (The
// instruction tanh.approx would be wrong by 2^-11 cap, which changes weights by percents.)
template <Cap kCap>
struct ScoreScale {
  float factor, limit, inverse;
  TOKAMAK_HOST_DEVICE ScoreScale(float scale, const TanhCap& cap)
      : factor(kCap == Cap::kYes ? 2 * kLog2E * scale * cap.inverse : kLog2E * scale),
        limit(kLog2E * cap.limit),
        inverse(cap.inverse / kLog2E) {}
  __device__ float operator()(float x) const {
    if constexpr (kCap == Cap::kYes) return limit - __fdividef(2.0f * limit, 1.0f + ptx::exp2_approx(factor * x));
    return x * factor;
  }
  // The derivative of the capped score by the score without a cap.
  __device__ float slope(float score) const { return 1.0f - score * inverse * (score * inverse); }
};

}  // namespace tokamak::flash

// Elementary functions in f32 without branch, libm or table: a loop over them becomes SIMD code, and CUDA kernels share
// the text. They need IEEE rounding (no -ffast-math: the rounding trick would be folded away).
#pragma once

#include <bit>
#include <cstdint>

#include "base/host_device.h"

namespace tokamak {

inline constexpr float kLog2E = 1.44269504088896341f;

// e^x, within 1.5 units in the last place from the least denormal to the greatest finite value; +inf above, 0 below,
// NaN stays NaN. x = n ln 2 + r, |r| <= ln 2 / 2 in Cody and Waite's two parts; e^r by Cephes' polynomial (expf.c).
TOKAMAK_HOST_DEVICE inline float exp_f32(float x) {
  // Beyond these bounds the result is 0 or inf anyway, and n fits the two factors below. Written so that NaN passes.
  x = x < -104.0f ? -104.0f : x;
  x = x > 89.0f ? 89.0f : x;
  constexpr float kRounder = 0x1.8p23f;  // adding it leaves the nearest integer in the low bits
  const float shifted = x * kLog2E + kRounder;
  const float n = shifted - kRounder;
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  // 2^n in two factors, each a normal number: so overflow becomes inf, and denormals are rounded once.
  const auto exponent = static_cast<int32_t>(std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRounder));
  const int32_t half = exponent >> 1;
  const float first = std::bit_cast<float>(static_cast<uint32_t>(half + 127) << 23);
  const float second = std::bit_cast<float>(static_cast<uint32_t>(exponent - half + 127) << 23);
  return p * first * second;
}

// 1 / (1 + e^-x)
TOKAMAK_HOST_DEVICE inline float sigmoid(float x) { return 1.0f / (1.0f + exp_f32(-x)); }

// x sigmoid(x); NaN at -inf
TOKAMAK_HOST_DEVICE inline float silu(float x) { return x / (1.0f + exp_f32(-x)); }

// d silu / dx = s + x s (1 - s) with s = sigmoid(x), which callers have at hand; NaN where x is infinite
TOKAMAK_HOST_DEVICE inline float silu_gradient(float x, float s) { return s * (1.0f + x * (1.0f - s)); }

// x/2 (1 + tanh z) = x sigmoid(2 z) with z = sqrt(2 / pi) (x + 0.044715 x^3)         (Hendrycks and Gimpel 2016, eq. 3)
inline constexpr float kGelu1 = 1.59576912160573f, kGelu3 = 0.0713548162726f;  // of x and x^3 in 2 z
TOKAMAK_HOST_DEVICE inline float gelu_inner(float x) { return x * (kGelu1 + kGelu3 * (x * x)); }
TOKAMAK_HOST_DEVICE inline float gelu(float x) { return x / (1.0f + exp_f32(-gelu_inner(x))); }

// d gelu / dx = s + x s (1 - s) 2 z' with s = sigmoid(2 z); NaN where x^2 is infinite
TOKAMAK_HOST_DEVICE inline float gelu_gradient(float x, float s) {
  return s * (1.0f + x * (1.0f - s) * (kGelu1 + 3.0f * kGelu3 * (x * x)));
}

// cap tanh(x / cap), within 2e-7 cap: keeps x near 0, and all else within +- cap            (Gemma 2, 2408.00118, 2.2)
struct TanhCap {
  float limit, inverse;
  explicit TanhCap(float cap) : limit(cap), inverse(cap > 0 ? 1.0f / cap : 0.0f) {}  // cap 0: none
  TOKAMAK_HOST_DEVICE float operator()(float x) const {
    return limit - 2.0f * limit / (exp_f32(2.0f * inverse * x) + 1.0f);
  }
  // The derivative, of the value y.
  TOKAMAK_HOST_DEVICE float slope(float y) const { return 1.0f - y * inverse * (y * inverse); }
};

}  // namespace tokamak

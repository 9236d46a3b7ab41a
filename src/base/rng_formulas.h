// The formulas of rng.h, shared by the CPU (rng.cc) and CUDA (cuda/random.cu). Both compile them without contraction of
// a * b + c, so that their bits agree. Other code may use only Philox, which computes with integers.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "base/host_device.h"

namespace tokamak::rng_formulas {

inline constexpr int kPhiloxRounds = 10;

// One round on the counter (c0, c1, c2, c3); bump_key comes between two rounds.
TOKAMAK_HOST_DEVICE inline void philox_round(uint32_t& c0, uint32_t& c1, uint32_t& c2, uint32_t& c3,
                                             const std::array<uint32_t, 2>& key) {
  constexpr uint64_t kMul0 = 0xD2511F53, kMul1 = 0xCD9E8D57;
  const uint64_t p0 = kMul0 * c0, p1 = kMul1 * c2;
  c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ key[0];
  c1 = static_cast<uint32_t>(p1);
  c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ key[1];
  c3 = static_cast<uint32_t>(p0);
}

TOKAMAK_HOST_DEVICE inline void bump_key(std::array<uint32_t, 2>& key) {
  key[0] += 0x9E3779B9;
  key[1] += 0xBB67AE85;
}

// Philox4x32-10 (Salmon et al., SC'11, "Parallel random numbers: as easy as 1, 2, 3"): 128-bit counter, 64-bit key.
TOKAMAK_HOST_DEVICE inline std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter,
                                                              std::array<uint32_t, 2> key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    philox_round(counter[0], counter[1], counter[2], counter[3], key);
    bump_key(key);
  }
  return counter;
}

TOKAMAK_HOST_DEVICE inline std::array<uint32_t, 4> block_at(uint64_t block, uint64_t stream,
                                                            std::array<uint32_t, 2> key) {
  return philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), static_cast<uint32_t>(stream),
                     static_cast<uint32_t>(stream >> 32)},
                    key);
}

TOKAMAK_HOST_DEVICE inline double to_uniform(uint32_t word) { return (word + 0.5) * 0x1p-32; }

TOKAMAK_HOST_DEVICE inline double log_ieee(double x) {
  // x = m 2^e with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.1716.
  const auto bits = std::bit_cast<uint64_t>(x);
  int64_t exponent = static_cast<int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFull) | 0x3FF0000000000000ull);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    exponent += 1;
  }
  const double s = (m - 1.0) / (m + 1.0);
  const double s2 = s * s;
  double series = 0.0;  // sum of s^(2k) / (2k + 1), k = 10 .. 0: the remainder is below 1e-18
  for (int k = 10; k >= 0; --k) series = series * s2 + 1.0 / (2 * k + 1);
  return double(exponent) * 0.6931471805599453 + 2.0 * s * series;
}

// The quotient of two polynomials of degree 7.
TOKAMAK_HOST_DEVICE inline double ratio_of_polynomials(const double (&a)[8], const double (&b)[8], double r) {
  double numerator = a[7], denominator = b[7];
  for (int i = 6; i >= 0; --i) {
    numerator = numerator * r + a[i];
    denominator = denominator * r + b[i];
  }
  return numerator / denominator;
}

TOKAMAK_HOST_DEVICE inline double normal_quantile(double p) {
  constexpr double kCentreA[8] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                  1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                  3.3430575583588128105e+4, 2.5090809287301226727e+3};
  constexpr double kCentreB[8] = {1.0,
                                  4.2313330701600911252e+1,
                                  6.8718700749205790830e+2,
                                  5.3941960214247511077e+3,
                                  2.1213794301586595867e+4,
                                  3.9307895800092710610e+4,
                                  2.8729085735721942674e+4,
                                  5.2264952788528545610e+3};
  constexpr double kTailA[8] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr double kTailB[8] = {1.0,
                                2.05319162663775882187e0,
                                1.67638483018380384940e0,
                                6.89767334985100004550e-1,
                                1.48103976427480074590e-1,
                                1.51986665636164571966e-2,
                                5.47593808499534494600e-4,
                                1.05075007164441684324e-9};
  constexpr double kFarA[8] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                               2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                               2.71155556874348757815e-5, 2.01033439929228813265e-7};
  constexpr double kFarB[8] = {1.0,
                               5.99832206555887937690e-1,
                               1.36929880922735805310e-1,
                               1.48753612908506148525e-2,
                               7.86869131145613259100e-4,
                               1.84631831751005468180e-5,
                               1.42151175831644588870e-7,
                               2.04426310338993978564e-15};
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) return q * ratio_of_polynomials(kCentreA, kCentreB, 0.180625 - q * q);
  const double r = std::sqrt(-log_ieee(q < 0 ? p : 1.0 - p));
  const double z =
      r <= 5.0 ? ratio_of_polynomials(kTailA, kTailB, r - 1.6) : ratio_of_polynomials(kFarA, kFarB, r - 5.0);
  return q < 0 ? -z : z;
}

// The value that RandomStream::fill_normal writes for one word of Philox.
TOKAMAK_HOST_DEVICE inline float normal_of(uint32_t word, double mean, double std) {
  return static_cast<float>(mean + std * normal_quantile(to_uniform(word)));
}

}  // namespace tokamak::rng_formulas

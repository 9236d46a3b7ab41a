// Counter-based random numbers: value = f(seed, stream, index), with no state but the counter. Any rank can draw any
// part of a tensor and gets the same bits, on any backend. Only operations that IEEE 754 defines exactly are used (+,
// -, x, /, sqrt; no libm, no contraction), and rng.cc is compiled with -ffp-contract=off.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tokamak {

// A named stream of 32-bit words under a seed. Word i is lane i % 4 of Philox block i / 4.
class RandomStream {
 public:
  RandomStream(uint64_t seed, std::string_view name);

  uint32_t word(uint64_t index) const;
  double uniform(uint64_t index) const;  // in (0, 1), the centre of one of 2^32 equal cells
  float normal(uint64_t index) const;    // standard normal deviate: normal_quantile(uniform(index))

  // out[i] = mean + std * normal(first + i), rounded to float once.
  void fill_normal(float* out, int64_t count, uint64_t first, double mean, double std) const;

  // For another implementation of fill_normal.
  std::array<uint32_t, 2> key() const { return key_; }
  uint64_t stream() const { return stream_; }

 private:
  std::array<uint32_t, 2> key_;
  uint64_t stream_;
};

// FNV-1a, 64 bit: the stable hash by which names become stream numbers.
uint64_t name_hash(std::string_view name);

// SplitMix64's finaliser: mixes a 64-bit value (Steele et al., OOPSLA'14).
uint64_t mix64(uint64_t x);

// Inverse of the standard normal distribution function, p in (0, 1); algorithm AS 241 (PPND16) of Wichura,
// Applied Statistics 37 (1988), relative accuracy about 1e-16; its logarithm is log_ieee.
double normal_quantile(double p);

// Natural logarithm of a positive normal number by +, -, x, / alone; relative error below 1e-14.
double log_ieee(double x);

}  // namespace tokamak

// bfloat16: the upper half of an IEEE float. Conversion from float rounds to nearest, ties to even; NaN stays NaN.
// round_at_random rounds without bias instead.
#pragma once

#include <bit>
#include <cstdint>

#include "base/host_device.h"

namespace tokamak {

struct bf16 {
  uint16_t bits;

  bf16() = default;
  TOKAMAK_HOST_DEVICE explicit bf16(float value) : bits(round(value)) {}
  TOKAMAK_HOST_DEVICE explicit operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }

 private:
  // Branch-free, so that loops over arrays vectorise.
  TOKAMAK_HOST_DEVICE static uint16_t round(float value) {
    const auto u = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = (u + 0x7FFFu + ((u >> 16) & 1u)) >> 16;
    const uint32_t quiet_nan = (u >> 16) | 0x40u;
    return static_cast<uint16_t>((u & 0x7FFFFFFFu) > 0x7F800000u ? quiet_nan : rounded);
  }
};

static_assert(sizeof(bf16) == 2);

// Stochastic rounding: 16 random bits choose one of x's two neighbours in bf16, the upper in magnitude with the
// probability (|x| - lower) / (upper - lower). The expectation is therefore x, and a bf16 never changes. The neighbour
// above the greatest bf16, 0x1.FEp127, is infinity: only a finite x beyond that becomes infinite. NaN and infinity
// stay.
TOKAMAK_HOST_DEVICE inline bf16 round_at_random(float x, uint16_t random) {
  const auto u = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (u + random) >> 16;  // the pattern of a finite float is linear between neighbours
  const uint32_t quiet_nan = (u >> 16) | 0x40u;
  bf16 result;
  result.bits = static_cast<uint16_t>((u & 0x7FFFFFFFu) > 0x7F800000u ? quiet_nan : rounded);
  return result;
}

// One spelling for both compute types, so that a kernel is written once as a template.
TOKAMAK_HOST_DEVICE inline float to_float(float x) { return x; }
TOKAMAK_HOST_DEVICE inline float to_float(bf16 x) { return static_cast<float>(x); }
template <class T>
TOKAMAK_HOST_DEVICE T from_float(float x) {
  return T(x);
}

}  // namespace tokamak

// bfloat16: the upper half of an IEEE float. Conversion from float rounds to nearest, ties to even; NaN stays NaN.
#pragma once

#include <bit>
#include <cstdint>

namespace tokamak {

struct bf16 {
  uint16_t bits;

  bf16() = default;
  explicit bf16(float value) : bits(round(value)) {}
  explicit operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

 private:
  // Branch-free, so that loops over arrays vectorise.
  static uint16_t round(float value) {
    const auto u = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = (u + 0x7FFFu + ((u >> 16) & 1u)) >> 16;
    const uint32_t quiet_nan = (u >> 16) | 0x40u;
    return static_cast<uint16_t>((u & 0x7FFFFFFFu) > 0x7F800000u ? quiet_nan : rounded);
  }
};

static_assert(sizeof(bf16) == 2);

// One spelling for both compute types, so that a kernel is written once as a template.
inline float to_float(float x) { return x; }
inline float to_float(bf16 x) { return static_cast<float>(x); }
template <class T>
T from_float(float x) {
  return T(x);
}

}  // namespace tokamak

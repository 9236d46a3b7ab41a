// kWidth elements at a time, in f32: 16-byte accesses where kWidth is kVecWidth<T>, single ones where it is 1 (rows
// whose length or start is no multiple of 16 bytes). Rounded to T once, by store.
#pragma once

#include <bit>
#include <cstdint>

#include "base/bf16.h"
#include "cuda/ptx.h"

namespace tokamak {

template <class T>
inline constexpr int kVecWidth = 16 / sizeof(T);

// On the host: calls body<kWidth>() with the widest access that rows of `width` elements allow, where the first row
// starts at a multiple of 16 bytes (an Arena's tensors do).
template <class T, class Body>
void with_vec_width(int64_t width, const Body& body) {
  if (width % kVecWidth<T> == 0) {
    body.template operator()<kVecWidth<T>>();
  } else {
    body.template operator()<1>();
  }
}

template <int kWidth>
struct Vec {
  float v[kWidth];
  __device__ float& operator[](int i) { return v[i]; }
  __device__ float operator[](int i) const { return v[i]; }
};

__device__ inline Vec<4> unpack(const float4& raw) { return {raw.x, raw.y, raw.z, raw.w}; }
__device__ inline Vec<8> unpack(const uint4& raw) {
  const uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
  Vec<8> out;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    out[2 * i] = std::bit_cast<float>(words[i] << 16);
    out[2 * i + 1] = std::bit_cast<float>(words[i] & 0xFFFF0000u);
  }
  return out;
}

template <int kWidth, class T>
__device__ Vec<kWidth> load(const T* from) {
  if constexpr (kWidth == 1) {
    return {to_float(*from)};
  } else if constexpr (sizeof(T) == 4) {
    return unpack(*reinterpret_cast<const float4*>(from));
  } else {
    return unpack(*reinterpret_cast<const uint4*>(from));
  }
}

template <int kWidth, class T>
__device__ void store(T* to, const Vec<kWidth>& x) {
  if constexpr (kWidth == 1) {
    *to = from_float<T>(x[0]);
  } else if constexpr (sizeof(T) == 4) {
    *reinterpret_cast<float4*>(to) = make_float4(x[0], x[1], x[2], x[3]);
  } else {
    *reinterpret_cast<uint4*>(to) = make_uint4(ptx::pack_bf16(x[0], x[1]), ptx::pack_bf16(x[2], x[3]),
                                               ptx::pack_bf16(x[4], x[5]), ptx::pack_bf16(x[6], x[7]));
  }
}

// What store would leave, for values that are used again after it.
template <class T, int kWidth>
__device__ Vec<kWidth> rounded(Vec<kWidth> x) {
#pragma unroll
  for (int i = 0; i < kWidth; ++i) x[i] = to_float(from_float<T>(x[i]));
  return x;
}

}  // namespace tokamak

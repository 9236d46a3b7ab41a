// Vector loads and stores of kWidth elements, converted to f32. kVecWidth<T> elements are one 16-byte access. Width 1
// is for rows whose length or start is not a multiple of 16 bytes. An operation on arrays of two types may use 8- or
// 32-byte accesses for one type. pack and store round to T, once.
#pragma once

#include <bit>
#include <cstdint>

#include "base/bf16.h"
#include "cuda/ptx.h"

namespace tokamak {

template <class T>
inline constexpr int kVecWidth = 16 / sizeof(T);

// Elements between the last multiple of 16 bytes and x; a slice of an array may start anywhere.
template <class T>
int64_t skew_of(const T* x) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(x) % 16 / sizeof(T));
}

// On the host: calls body<kWidth>() with the widest access that rows of `width` elements allow. `arrays` (may be null)
// need not start at a multiple of 16 bytes, unlike an Arena's tensors.
template <class T, class Body, class... Element>
void with_vec_width(int64_t width, const Body& body, const Element*... arrays) {
  if (width % kVecWidth<T> == 0 && ((skew_of(arrays) == 0) && ...)) {
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

template <int kWidth>
__device__ Vec<kWidth> operator+(Vec<kWidth> a, const Vec<kWidth>& b) {
#pragma unroll
  for (int i = 0; i < kWidth; ++i) a[i] += b[i];
  return a;
}

__device__ inline Vec<1> unpack(float raw) { return {raw}; }
__device__ inline Vec<1> unpack(bf16 raw) { return {to_float(raw)}; }
__device__ inline Vec<4> unpack(const float4& raw) { return {raw.x, raw.y, raw.z, raw.w}; }
__device__ inline Vec<4> unpack(const uint2& raw) {  // of bf16
  return {std::bit_cast<float>(raw.x << 16), std::bit_cast<float>(raw.x & 0xFFFF0000u),
          std::bit_cast<float>(raw.y << 16), std::bit_cast<float>(raw.y & 0xFFFF0000u)};
}
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

// Elements in storage format (a word of T or of 16 bytes): many pending bf16 need fewer registers than as a Vec.
template <int kWidth, class T>
__device__ auto load_packed(const T* from) {
  if constexpr (kWidth == 1) {
    return *from;
  } else if constexpr (sizeof(T) == 4) {
    return *reinterpret_cast<const float4*>(from);
  } else {
    return *reinterpret_cast<const uint4*>(from);
  }
}
template <class T, int kWidth>
using Packed = decltype(load_packed<kWidth>(static_cast<const T*>(nullptr)));

template <int kWidth, class T>
__device__ void store_packed(T* to, const Packed<T, kWidth>& x) {
  *reinterpret_cast<Packed<T, kWidth>*>(to) = x;
}

template <class T, int kWidth>
__device__ Packed<T, kWidth> pack(const Vec<kWidth>& x) {
  if constexpr (kWidth == 1) {
    return from_float<T>(x[0]);
  } else if constexpr (sizeof(T) == 4) {
    return make_float4(x[0], x[1], x[2], x[3]);
  } else {
    return make_uint4(ptx::pack_bf16(x[0], x[1]), ptx::pack_bf16(x[2], x[3]), ptx::pack_bf16(x[4], x[5]),
                      ptx::pack_bf16(x[6], x[7]));
  }
}

template <int kWidth, class T>
__device__ Vec<kWidth> load(const T* from) {
  if constexpr (kWidth * sizeof(T) == 32) {
    const Vec<4> low = load<4>(from), high = load<4>(from + 4);
    return {low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]};
  } else if constexpr (kWidth == 4 && sizeof(T) == 2) {
    return unpack(*reinterpret_cast<const uint2*>(from));
  } else {
    return unpack(load_packed<kWidth>(from));
  }
}

template <int kWidth, class T>
__device__ void store(T* to, const Vec<kWidth>& x) {
  if constexpr (kWidth * sizeof(T) == 32) {
    store(to, Vec<4>{x[0], x[1], x[2], x[3]});
    store(to + 4, Vec<4>{x[4], x[5], x[6], x[7]});
  } else if constexpr (kWidth == 4 && sizeof(T) == 2) {
    *reinterpret_cast<uint2*>(to) = make_uint2(ptx::pack_bf16(x[0], x[1]), ptx::pack_bf16(x[2], x[3]));
  } else {
    store_packed<kWidth>(to, pack<T>(x));
  }
}

}  // namespace tokamak

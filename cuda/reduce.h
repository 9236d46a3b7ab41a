// Sums and maxima over a warp or a block, in a fixed order: the same bits at every launch.
#pragma once

#include <cstdint>

namespace tokamak {

inline constexpr int kWarp = 32;

__device__ inline int lane() { return static_cast<int>(threadIdx.x) % kWarp; }
__device__ inline int warp() { return static_cast<int>(threadIdx.x) / kWarp; }

// combine must be commutative and associative up to rounding; every lane of the warp gets the result.
template <class T, class Combine>
__device__ T warp_reduce(T x, const Combine& combine) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) x = combine(x, __shfl_xor_sync(0xFFFFFFFFu, x, offset));
  return x;
}

template <class T>
__device__ T warp_sum(T x) {
  return warp_reduce(x, [](T a, T b) { return a + b; });
}

// Over a one-dimensional block of kThreads; every thread gets the result. `partial` is shared memory of kThreads /
// kWarp elements, reusable after the next barrier.
template <int kThreads, class T, class Combine>
__device__ T block_reduce(T x, T* partial, const Combine& combine) {
  static_assert(kThreads % kWarp == 0 && kThreads <= kWarp * kWarp);
  x = warp_reduce(x, combine);
  if (lane() == 0) partial[warp()] = x;
  __syncthreads();
  T total = partial[0];
#pragma unroll
  for (int w = 1; w < kThreads / kWarp; ++w) total = combine(total, partial[w]);
  return total;
}

template <int kThreads, class T>
__device__ T block_sum(T x, T* partial) {
  return block_reduce<kThreads>(x, partial, [](T a, T b) { return a + b; });
}

}  // namespace tokamak

// Copies 8 bytes per head and token: bound by launch latency.
#include "cuda/attention/pack_lse.h"

#include "cuda/launch.h"

namespace tokamak {
namespace {

constexpr int kThreads = 256;

// One thread per element of `to`, and per zero behind it.
__global__ void pack(const float* from, float* to, int64_t a, int64_t b, int64_t inner, int64_t zeros) {
  const int64_t n = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (n >= a * b * inner + zeros) return;
  if (n >= a * b * inner) {
    to[n] = 0;
    return;
  }
  const int64_t i = n % inner, outer = n / inner;
  to[n] = from[(outer % a * b + outer / a) * inner + i];
}

}  // namespace

void pack_lse(cudaStream_t stream, const float* from, float* to, int64_t a, int64_t b, int64_t inner, int64_t zeros) {
  launch({"pack_lse", {blocks_for(a * b * inner + zeros, kThreads)}, kThreads}, stream, pack, from, to, a, b, inner,
         zeros);
}

}  // namespace tokamak

// A copy of rows of T floats: bound by its launch.
#include "cuda/pack_lse.h"

#include "cuda/launch.h"

namespace tokamak {
namespace {

constexpr int kThreads = 256;

// One thread per element of packed.
__global__ void pack(const float* lse, float* packed, int64_t documents, int64_t heads, int64_t length) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= documents * heads * length) return;
  const int64_t t = i % length, h = i / length % heads, b = i / length / heads;
  packed[i] = lse[(h * documents + b) * length + t];
}

}  // namespace

void pack_lse(cudaStream_t stream, const float* lse, float* packed, const UniformDocuments& documents, int64_t heads) {
  launch({"pack_lse", {blocks_for(documents.tokens() * heads, kThreads)}, kThreads}, stream, pack, lse, packed,
         documents.count, heads, documents.length);
}

}  // namespace tokamak

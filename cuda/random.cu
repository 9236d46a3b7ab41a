// Normal deviates of a named stream, by the formulas of base/rng.h and with the CPU's bits; so this file is compiled
// without FMA contraction (-fmad=false). One thread per block of Philox, four deviates.
#include "base/rng.h"
#include "base/rng_formulas.h"
#include "cuda/cuda_ops.h"
#include "cuda/device.h"
#include "cuda/launch.h"

namespace tokamak {
namespace {

constexpr int kThreads = 256;
constexpr int kWords = 4;  // words per Philox block

struct Deviates {
  std::array<uint32_t, 2> key;
  uint64_t stream;
  uint64_t first;  // stream index of the first element
  double mean, std;
};

__global__ void fill_normal(float* x, int64_t count, Deviates d) {
  const uint64_t block = d.first / kWords + uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  const auto words = rng_formulas::block_at(block, d.stream, d.key);
#pragma unroll
  for (int k = 0; k < kWords; ++k) {
    const auto i = static_cast<int64_t>(block * kWords + k - d.first);  // negative before the first element
    if (0 <= i && i < count) x[i] = rng_formulas::normal_of(words[k], d.mean, d.std);
  }
}

}  // namespace

void CudaOps::do_random_normal(Stream& stream, const RandomNormal& args) {
  const RandomStream random(args.seed, args.name);
  const Deviates deviates{random.key(), random.stream(), static_cast<uint64_t>(args.first), args.mean, args.std};
  const int64_t count = args.x.count(), words = count > 0 ? args.first % kWords + count : 0;
  launch({"random_normal", blocks_for(words, int64_t{kThreads} * kWords), kThreads}, handle(stream), fill_normal,
         args.x.as<float>(), count, deviates);
}

}  // namespace tokamak

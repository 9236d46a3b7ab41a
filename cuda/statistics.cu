// Sums over whole tensors, and Normalize, in f64: squares of large f32 must not overflow. (One operation and one
// conversion per element of 2 or 4 bytes: the f64 units of A100, H100 and B200 keep up with memory.) A block's share of
// the elements depends on their number alone, and its result goes to scratch. A last block combines these in a fixed
// order.
#include <limits>
#include <type_traits>

#include "backend/formulas.h"
#include "cuda/cuda_ops.h"
#include "cuda/device.h"
#include "cuda/flat.h"
#include "cuda/launch.h"
#include "cuda/reduce.h"
#include "cuda/vec.h"

namespace tokamak {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 1024;     // about one wave
constexpr int kAhead = 4;                // vectors loaded before the first is used
constexpr int64_t kMinElements = 16384;  // per block

unsigned blocks_of(int64_t count) { return blocks_for(std::min(count, kMaxBlocks * kMinElements), kMinElements); }

// Calls visit(x[i]) for this thread's share of x: whole vectors of 16 bytes, and single elements before and after them.
template <class T, class Visit>
__device__ void for_share(const T* __restrict__ x, int64_t count, int64_t skew, const Visit& visit) {
  constexpr int kWidth = kVecWidth<T>;
  const int64_t thread = int64_t{blockIdx.x} * kThreads + threadIdx.x, threads = int64_t{gridDim.x} * kThreads;
  const int64_t head = min(count, (kWidth - skew) % kWidth), vectors = (count - head) / kWidth;
  const T* body = x + head;
  const auto visit_all = [&](const Packed<T, kWidth>& packed) {
    const auto values = unpack(packed);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) visit(values[k]);
  };
  int64_t v = thread;
  for (; v + (kAhead - 1) * threads < vectors; v += kAhead * threads) {
    Packed<T, kWidth> ahead[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) ahead[k] = load_packed<kWidth>(body + (v + k * threads) * kWidth);
#pragma unroll
    for (int k = 0; k < kAhead; ++k) visit_all(ahead[k]);
  }
  for (; v < vectors; v += threads) visit_all(load_packed<kWidth>(body + v * kWidth));
  const int64_t tail = head + vectors * kWidth;
  if (thread < head) visit(to_float(x[thread]));
  if (tail + thread < count) visit(to_float(x[tail + thread]));
}

template <class T>
__global__ void squares_of_share(const T* x, int64_t count, int64_t skew, double* shares) {
  __shared__ double partial[kThreads / kWarp];
  double sum = 0;
  for_share(x, count, skew, [&](float v) { sum += double(v) * v; });
  sum = block_sum<kThreads>(sum, partial);
  if (threadIdx.x == 0) shares[blockIdx.x] = sum;
}

// The sum of the shares, for every thread of the only block.
__device__ double sum_of_shares(const double* shares, int64_t count) {
  __shared__ double partial[kThreads / kWarp];
  double sum = 0;
  for (int64_t s = threadIdx.x; s < count; s += kThreads) sum += shares[s];
  return block_sum<kThreads>(sum, partial);
}

__global__ void add_shares(const double* shares, int64_t count, double* total) {
  const double sum = sum_of_shares(shares, count);
  if (threadIdx.x == 0) *total += sum;
}

__global__ void take_root(const double* shares, int64_t count, double* norm) {
  const double sum = sum_of_shares(shares, count);
  if (threadIdx.x == 0) *norm = std::sqrt(sum);
}

// Multiplies x by the normalizing_factor().
template <int kWidth, class T>
__global__ void divide_by_norm(T* x, int64_t count, int64_t skew, const double* norm, double margin) {
  const float factor = normalizing_factor(*norm, margin);
  for_own_elements<kWidth>(count, skew, [&]<int kOwn>(int64_t i) {
    auto values = load<kOwn>(x + i);
#pragma unroll
    for (int k = 0; k < kOwn; ++k) values[k] *= factor;
    store(x + i, values);
  });
}

// Statistics of elements seen so far; outputs are f64, also the counts (exact up to 2^53).
struct Health {
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  double squares = 0;
  double non_finite = 0;
};

// Combines the threads' statistics over the block; one thread writes `out` (kStatistics).
__device__ void write_health(const Health& mine, double* out) {
  __shared__ double partial[kStatistics][kThreads / kWarp];
  const double low = block_reduce<kThreads>(mine.min, partial[kMin], [](double a, double b) { return min(a, b); });
  const double high = block_reduce<kThreads>(mine.max, partial[kMax], [](double a, double b) { return max(a, b); });
  const double squares = block_sum<kThreads>(mine.squares, partial[kSquares]);
  const double non_finite = block_sum<kThreads>(mine.non_finite, partial[kNonFinite]);
  if (threadIdx.x > 0) return;
  out[kMin] = low;
  out[kMax] = high;
  out[kSquares] = squares;
  out[kNonFinite] = non_finite;
}

// `magnitudes` (blocks, kMagnitudeBins), or null: the counts of this block. Each warp has its own counters in shared
// memory, so fewer threads contend for one. Integer sums have the same bits in any order.
template <class T>
__global__ void health_of_share(const T* x, int64_t count, int64_t skew, const double* divisor, double* shares,
                                double* magnitudes) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr int kBins = static_cast<int>(kMagnitudeBins), kWarps = kThreads / kWarp;
  __shared__ unsigned counts[kWarps * kBins];
  for (int i = static_cast<int>(threadIdx.x); i < kWarps * kBins; i += kThreads) counts[i] = 0;
  __syncthreads();
  unsigned* own = counts + warp() * kBins;
  const float scale = reciprocal(divisor);
  float low = kInf, high = -kInf;
  double squares = 0;
  int64_t non_finite = 0;
  for_share(x, count, skew, [&](float raw) {
    const float v = scale * raw;
    const bool finite = std::abs(v) < kInf;  // false for NaN
    low = finite ? min(low, v) : low;
    high = finite ? max(high, v) : high;
    const double value = finite ? v : 0.0f;
    squares += value * value;
    non_finite += finite ? 0 : 1;
    if (magnitudes != nullptr && finite) atomicAdd(own + magnitude_bin(v), 1u);
  });
  write_health({low, high, squares, double(non_finite)}, shares + blockIdx.x * kStatistics);
  if (magnitudes == nullptr) return;
  __syncthreads();
  for (int bin = static_cast<int>(threadIdx.x); bin < kBins; bin += kThreads) {
    double sum = 0;
    for (int w = 0; w < kWarps; ++w) sum += counts[w * kBins + bin];
    magnitudes[blockIdx.x * kBins + bin] = sum;
  }
}

// out (kMagnitudeBins) = the sum of the blocks' counts; one block of kMagnitudeBins threads.
__global__ void add_magnitudes(const double* magnitudes, int64_t blocks, double* out) {
  double sum = 0;
  for (int64_t block = 0; block < blocks; ++block) sum += magnitudes[block * kMagnitudeBins + threadIdx.x];
  out[threadIdx.x] = sum;
}

// Combines the shares (count, kStatistics) into out; one block.
__global__ void combine_shares(const double* shares, int64_t count, double* out) {
  Health total;
  for (int64_t s = threadIdx.x; s < count; s += kThreads) {
    const double* share = shares + s * kStatistics;
    total.min = min(total.min, share[kMin]);
    total.max = max(total.max, share[kMax]);
    total.squares += share[kSquares];
    total.non_finite += share[kNonFinite];
  }
  write_health(total, out);
}

// Sums of integers: the order does not matter to their bits.
template <class Bits>
__global__ void checksum_of_share(const Bits* __restrict__ x, int64_t count, unsigned long long* shares) {
  __shared__ unsigned long long partial[kThreads / kWarp];
  const int64_t threads = int64_t{gridDim.x} * kThreads;
  unsigned long long sum = 0;
#pragma unroll 4
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += threads) {
    sum += (2 * static_cast<unsigned long long>(i) + 1) * x[i];
  }
  sum = block_sum<kThreads>(sum, partial);
  if (threadIdx.x == 0) shares[blockIdx.x] = sum;
}

// total += the sum of the shares; one block. `total` has two halves, since it is aligned to 4 bytes only.
__global__ void add_checksums(const unsigned long long* shares, int64_t count, int32_t* total) {
  __shared__ unsigned long long partial[kThreads / kWarp];
  unsigned long long sum = 0;
  for (int64_t s = threadIdx.x; s < count; s += kThreads) sum += shares[s];
  sum = block_sum<kThreads>(sum, partial);
  if (threadIdx.x > 0) return;
  sum += static_cast<unsigned long long>(static_cast<uint32_t>(total[1])) << 32 | static_cast<uint32_t>(total[0]);
  total[0] = static_cast<int32_t>(sum);
  total[1] = static_cast<int32_t>(sum >> 32);
}

}  // namespace

int64_t reduction_scratch() { return kMaxBlocks * (kStatistics + kMagnitudeBins) * size_of(DType::kF64); }

void CudaOps::do_sum_squares(Stream& stream, const SumSquares& args) {
  const auto* x = args.x.as<float>();
  const int64_t count = args.x.count();
  const unsigned blocks = blocks_of(count);
  auto* shares = reinterpret_cast<double*>(scratch(reduction_scratch()));
  launch({"sum_squares", blocks, kThreads}, handle(stream), squares_of_share<float>, x, count, skew_of(x), shares);
  launch({"sum_squares, total", 1, kThreads}, handle(stream), add_shares, shares, int64_t{blocks},
         args.sums.as<double>() + kSumSquaredGradients);
}

void CudaOps::do_normalize(Stream& stream, const Normalize& args) {
  const int64_t count = args.x.count();
  const unsigned blocks = blocks_of(count);
  auto* shares = reinterpret_cast<double*>(scratch(reduction_scratch()));
  auto* norm = args.norm.as<double>();
  with_act_type(args.x.dtype(), [&]<class T>(T) {
    T* x = args.x.as<T>();
    launch({"normalize, squares", blocks, kThreads}, handle(stream), squares_of_share<T>, x, count, skew_of(x), shares);
    launch({"normalize, norm", 1, kThreads}, handle(stream), take_root, shares, int64_t{blocks}, norm);
    const auto divide = [&]<int kWidth>(unsigned grid, int64_t skew) {
      launch({"normalize", grid, kFlatThreads}, handle(stream), divide_by_norm<kWidth, T>, x, count, skew, norm,
             args.margin);
    };
    with_flat_width(count, nullptr, divide, x);
  });
}

void CudaOps::do_statistics(Stream& stream, const Statistics& args) {
  const int64_t count = args.x.count();
  const unsigned blocks = blocks_of(count);
  auto* shares = reinterpret_cast<double*>(scratch(reduction_scratch()));
  double* magnitudes = args.magnitudes ? shares + kMaxBlocks * kStatistics : nullptr;
  const double* divisor = args.divisor ? args.divisor.as<double>() : nullptr;
  with_act_type(args.x.dtype(), [&]<class T>(T) {
    const T* x = args.x.as<T>();
    launch({"statistics", blocks, kThreads}, handle(stream), health_of_share<T>, x, count, skew_of(x), divisor, shares,
           magnitudes);
  });
  launch({"statistics, total", 1, kThreads}, handle(stream), combine_shares, shares, int64_t{blocks},
         args.out.as<double>());
  if (magnitudes == nullptr) return;
  launch({"statistics, magnitudes", 1, static_cast<unsigned>(kMagnitudeBins)}, handle(stream), add_magnitudes,
         magnitudes, int64_t{blocks}, args.magnitudes.as<double>());
}

void CudaOps::do_checksum(Stream& stream, const Checksum& args) {
  const int64_t count = args.x.count();
  const unsigned blocks = blocks_of(count);
  auto* shares = reinterpret_cast<unsigned long long*>(scratch(reduction_scratch()));
  const auto add = [&]<class Bits>(const Bits* x) {
    launch({"checksum", blocks, kThreads}, handle(stream), checksum_of_share<Bits>, x, count, shares);
  };
  with_act_type(args.x.dtype(), [&]<class T>(T) {
    add(static_cast<const std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>*>(args.x.data()));
  });
  launch({"checksum, total", 1, kThreads}, handle(stream), add_checksums, shares, int64_t{blocks},
         args.sum.as<int32_t>());
}

}  // namespace tokamak

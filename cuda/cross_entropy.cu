// Chunked linear + cross-entropy, as on the CPU: logits by a GEMM (f32), one block per row for loss and dlogits, two
// GEMMs for the chunk's contributions to dhidden and dweight. A row is read twice: for its maximum and sum together,
// and for dlogits (from the L2 cache up to some 50 000 columns). That is 8 V bytes in and 2 V out in bf16, compared
// with the GEMMs' 6 V C FLOPs and their 8 V bytes of the same values.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/gpu_sizes.h"
#include "base/math.h"
#include "cuda/cuda_ops.h"
#include "cuda/device.h"
#include "cuda/launch.h"
#include "cuda/ptx.h"
#include "cuda/reduce.h"
#include "cuda/vec.h"
#include "cuda/workspace.h"

namespace tokamak {
namespace {

// Two blocks fill an SM's registers: one reads while the other waits at a barrier, and few rows are in flight.
constexpr int kThreads = 512;
constexpr int kBatch = 8;  // accesses in flight per thread

using Layout = GpuHeadScratch;

// The host cannot check the targets: one outside the vocabulary is ignored.
__device__ bool counts(int32_t target, int64_t vocab) { return 0 <= target && target < vocab; }

__device__ float exp_approx(float x) { return ptx::exp2_approx(x * kLog2E); }

// A thread's vectors of a row are kThreads vectors apart: vector b after `first`.
template <int kWidth>
__device__ int64_t column(int64_t first, int b) {
  return first + b * int64_t{kThreads} * kWidth;
}

// -inf past the end of the row.
template <int kWidth>
__device__ void load_batch(const float* row, int64_t first, int64_t vocab, Vec<kWidth> (&x)[kBatch]) {
#pragma unroll
  for (int b = 0; b < kBatch; ++b) {
#pragma unroll
    for (int k = 0; k < kWidth; ++k) x[b][k] = -std::numeric_limits<float>::infinity();
    if (column<kWidth>(first, b) < vocab) x[b] = load<kWidth>(row + column<kWidth>(first, b));
  }
}

// The maximum logit and the sum of exp(logit - maximum), in one pass (Milakov and Gimelshein 2018): a partial sum is
// rescaled when the maximum grows. Errors: 2^-22 of each term from exp2_approx, |x| 2^-24 from rounding its argument.
template <int kWidth>
__device__ float2 greatest_and_sum(const float* row, int64_t vocab) {
  __shared__ float tops[kThreads / kWarp], sums[kThreads / kWarp];
  float top = std::numeric_limits<float>::lowest(), sum = 0;  // finite: -inf - -inf is NaN
  for (int64_t i = int64_t{threadIdx.x} * kWidth; i < vocab; i = column<kWidth>(i, kBatch)) {
    Vec<kWidth> x[kBatch];
    load_batch(row, i, vocab, x);
    float higher = top;
#pragma unroll
    for (int e = 0; e < kBatch * kWidth; ++e) higher = fmaxf(higher, x[e / kWidth][e % kWidth]);
    sum *= exp_approx(top - higher);
#pragma unroll
    for (int e = 0; e < kBatch * kWidth; ++e) sum += exp_approx(x[e / kWidth][e % kWidth] - higher);
    top = higher;
  }
  const float highest = block_reduce<kThreads>(top, tops, [](float a, float b) { return fmaxf(a, b); });
  return make_float2(highest, block_sum<kThreads>(sum * exp_approx(top - highest), sums));
}

// dlogits of a row; d may be the row itself.
template <class T, int kWidth>
__device__ void gradient(const float* row, T* d, int64_t vocab, int32_t target, float log_z, float factor) {
  for (int64_t i = int64_t{threadIdx.x} * kWidth; i < vocab; i = column<kWidth>(i, kBatch)) {
    Vec<kWidth> x[kBatch];
    load_batch(row, i, vocab, x);
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const int64_t at = column<kWidth>(i, b);
      if (at >= vocab) break;
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        x[b][k] = factor * exp_approx(x[b][k] - log_z) - (at + k == target ? 1.0f : 0.0f);
      }
      store(d + at, x[b]);
    }
  }
}

template <class T>
struct Chunk {
  const float* logits;     // (rows, V)
  const int32_t* targets;  // (rows)
  float* token_loss;       // (rows)
  float* z_losses;         // (rows)
  T* dlogits;              // (rows, V), null: not wanted
  int64_t vocab;
  double z_weight;
};

// One block per row.
template <class T, int kWidth>
__global__ void __launch_bounds__(kThreads) loss_rows(Chunk<T> chunk) {
  const int64_t n = blockIdx.x;
  const float* row = chunk.logits + n * chunk.vocab;
  T* d = chunk.dlogits == nullptr ? nullptr : chunk.dlogits + n * chunk.vocab;
  const int32_t target = chunk.targets[n];
  if (!counts(target, chunk.vocab)) {
    if (threadIdx.x == 0) chunk.token_loss[n] = chunk.z_losses[n] = 0.0f;
    if (d == nullptr) return;
    for (int64_t i = int64_t{threadIdx.x} * kWidth; i < chunk.vocab; i = column<kWidth>(i, 1)) {
      store(d + i, Vec<kWidth>{});
    }
    return;
  }
  __shared__ float log_z_of_row, factor_of_row;
  const float2 found = greatest_and_sum<kWidth>(row, chunk.vocab);
  if (threadIdx.x == 0) {
    const double log_z = static_cast<double>(found.x) + std::log(static_cast<double>(found.y));
    chunk.token_loss[n] = static_cast<float>(log_z - static_cast<double>(row[target]));
    chunk.z_losses[n] = static_cast<float>(chunk.z_weight * log_z * log_z);
    log_z_of_row = static_cast<float>(log_z);
    factor_of_row = static_cast<float>(1 + 2 * chunk.z_weight * log_z);
  }
  if (d == nullptr) return;
  __syncthreads();  // row[target] must be read before d, which may be the row, is written
  gradient<T, kWidth>(row, d, chunk.vocab, target, log_z_of_row, factor_of_row);
}

// One block, so the order of the sums is fixed.
__global__ void __launch_bounds__(kThreads)
    add_sums(const float* token_loss, const float* z_losses, const int32_t* targets, int64_t tokens, int64_t vocab,
             double* sums) {
  __shared__ double partial[3][kThreads / kWarp];
  double loss = 0, z_loss = 0, count = 0;
  for (int64_t n = threadIdx.x; n < tokens; n += kThreads) {
    loss += static_cast<double>(token_loss[n]);
    z_loss += static_cast<double>(z_losses[n]);
    count += counts(targets[n], vocab) ? 1.0 : 0.0;
  }
  loss = block_sum<kThreads>(loss, partial[0]);
  z_loss = block_sum<kThreads>(z_loss, partial[1]);
  count = block_sum<kThreads>(count, partial[2]);
  if (threadIdx.x != 0) return;
  sums[kSumLoss] += loss;
  sums[kSumZLoss] += z_loss;
  sums[kSumTargets] += count;
}

}  // namespace

int64_t cross_entropy_scratch(const Workload& w, int64_t logits_bytes) {
  return Layout(w.tokens, w.vocab, w.compute, logits_bytes).bytes;
}

int64_t CudaOps::head_chunk_rows(int64_t tokens, int64_t vocab) const {
  return GpuHeadScratch::chunk_rows(tokens, vocab, logits_bytes_);
}

void CudaOps::do_linear_cross_entropy(Stream& stream, const LinearCrossEntropy& args) {
  const int64_t tokens = args.hidden.dim(0), vocab = args.weight.dim(0);
  const DType act = args.hidden.dtype();
  const Layout layout(tokens, vocab, act, logits_bytes_);
  std::byte* const memory = scratch(layout.bytes);
  auto* const z_losses = reinterpret_cast<float*>(memory + layout.z_losses);
  const auto* targets = args.targets.as<int32_t>();
  auto* const token_loss = args.token_loss.as<float>();
  for (int64_t begin = 0; begin < tokens; begin += layout.rows) {
    const int64_t end = std::min(tokens, begin + layout.rows);
    const Tensor hidden = args.hidden.rows(begin, end);
    const Tensor logits(memory, DType::kF32, {end - begin, vocab});
    const Tensor dlogits(memory + layout.dlogits, act, {end - begin, vocab});
    do_gemm(stream, {.a = hidden, .b = args.weight, .c = logits, .trans_b = Transpose::kYes});
    with_act_type(act, [&]<class T>(T) {
      const Chunk<T> chunk{.logits = logits.as<float>(),
                           .targets = targets + begin,
                           .token_loss = token_loss + begin,
                           .z_losses = z_losses + begin,
                           .dlogits = args.dhidden ? dlogits.as<T>() : nullptr,
                           .vocab = vocab,
                           .z_weight = static_cast<double>(args.z_weight)};
      with_vec_width<float>(vocab, [&]<int kWidth>() {
        launch({"linear_cross_entropy", static_cast<unsigned>(end - begin), kThreads}, handle(stream),
               loss_rows<T, kWidth>, chunk);
      });
    });
    if (!args.dhidden) continue;
    do_gemm(stream, {.a = dlogits, .b = args.weight, .c = args.dhidden.rows(begin, end)});
    do_gemm(stream, {.a = dlogits,
                     .b = hidden,
                     .c = args.dweight,
                     .trans_a = Transpose::kYes,
                     .write = begin > 0 ? Write::kAccumulate : args.write});
  }
  launch({"linear_cross_entropy, sums", 1, kThreads}, handle(stream), add_sums, token_loss, z_losses, targets, tokens,
         vocab, args.sums.as<double>());
}

}  // namespace tokamak

// Chunked linear + cross-entropy, as on the CPU, but logits are rounded to bf16 if activations are; a cap is applied to
// the rounded ones wherever they are read. A GEMM writes the
// logits, one block per row computes loss and dlogits, and two GEMMs add the chunk to dhidden and dweight. dlogits
// overwrite the logits. A row is read twice: once for its maximum and sum, then backwards for dlogits, because its end
// is still in the L2 cache. In bf16 a row costs 2 V bytes read, about V read again, and 2 V written. For a row the
// GEMMs do 6 V C FLOPs and move 6 V bytes of logits and dlogits.
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

namespace tokamak {
namespace {

// Two blocks fill an SM's registers: one reads while the other waits at a barrier. Few rows are read at once. A cap
// needs a few registers more.
constexpr int kThreads = 512;
// Accesses in flight per thread; 32 values, which fill the registers.
template <int kWidth>
constexpr int kBatch = kWidth == 8 ? 4 : 8;

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
template <class T, int kWidth>
__device__ void load_batch(const T* row, int64_t first, int64_t vocab, Packed<T, kWidth> (&x)[kBatch<kWidth>]) {
  Vec<kWidth> past;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) past[k] = -std::numeric_limits<float>::infinity();
#pragma unroll
  for (int b = 0; b < kBatch<kWidth>; ++b) {
    const int64_t at = column<kWidth>(first, b);
    x[b] = at < vocab ? load_packed<kWidth>(row + at) : pack<T>(past);
  }
}

enum class Cap { kNo, kYes };
template <Cap kCap>
constexpr int kBlocksPerSm = kCap == Cap::kNo ? 2 : 1;

// A logit as read from memory, or capped.
template <Cap kCap>
struct Logit {
  TanhCap cap;
  __device__ float operator()(float x) const {
    if constexpr (kCap == Cap::kNo) return x;
    // TanhCap's formula, within 2^-21 cap
    return cap.limit - __fdividef(2.0f * cap.limit, 1.0f + ptx::exp2_approx(2.0f * kLog2E * cap.inverse * x));
  }
};

// The maximum logit and the sum of exp(logit - maximum), in one pass (Milakov and Gimelshein 2018): a partial sum is
// rescaled when the maximum grows. Errors: 2^-22 of each term from exp2_approx, |x| 2^-24 from rounding its argument.
template <class T, int kWidth, Cap kCap>
__device__ float2 greatest_and_sum(const T* row, int64_t vocab, const Logit<kCap>& logit) {
  __shared__ float tops[kThreads / kWarp], sums[kThreads / kWarp];
  float top = std::numeric_limits<float>::lowest(), sum = 0;  // finite: -inf - -inf is NaN
  for (int64_t i = int64_t{threadIdx.x} * kWidth; i < vocab; i = column<kWidth>(i, kBatch<kWidth>)) {
    Packed<T, kWidth> x[kBatch<kWidth>];
    load_batch<T, kWidth>(row, i, vocab, x);
    const auto value = [&](int e) {
      const float loaded = unpack(x[e / kWidth])[e % kWidth];
      // A cap would make a large negative number of the -inf past the end.
      return kCap == Cap::kNo || loaded > -std::numeric_limits<float>::infinity() ? logit(loaded) : loaded;
    };
    float higher = top;
#pragma unroll
    for (int e = 0; e < kBatch<kWidth> * kWidth; ++e) higher = fmaxf(higher, value(e));
    sum *= exp_approx(top - higher);
#pragma unroll
    for (int e = 0; e < kBatch<kWidth> * kWidth; ++e) sum += exp_approx(value(e) - higher);
    top = higher;
  }
  const float highest = block_reduce<kThreads>(top, tops, [](float a, float b) { return fmaxf(a, b); });
  return make_float2(highest, block_sum<kThreads>(sum * exp_approx(top - highest), sums));
}

// Logits of a row to dlogits, from the row's end.
template <class T, int kWidth, Cap kCap>
__device__ void to_gradient(T* row, int64_t vocab, int32_t target, float log_z, float factor,
                            const Logit<kCap>& logit) {
  const int64_t first = int64_t{threadIdx.x} * kWidth, step = column<kWidth>(0, kBatch<kWidth>);
  if (first >= vocab) return;
  for (int64_t i = first + (vocab - 1 - first) / step * step; i >= 0; i -= step) {
    Packed<T, kWidth> x[kBatch<kWidth>];
    load_batch<T, kWidth>(row, i, vocab, x);
#pragma unroll
    for (int b = 0; b < kBatch<kWidth>; ++b) {
      const int64_t at = column<kWidth>(i, b);
      if (at >= vocab) break;
      Vec<kWidth> d = unpack(x[b]);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        const float y = logit(d[k]);
        d[k] = factor * exp_approx(y - log_z) - (at + k == target ? 1.0f : 0.0f);
        if constexpr (kCap == Cap::kYes) d[k] *= logit.cap.slope(y);
      }
      store(row + at, d);
    }
  }
}

enum class Gradient { kNo, kYes };

template <class T>
struct Chunk {
  T* logits;               // (rows, V), in place dlogits if wanted
  const int32_t* targets;  // (rows)
  float* token_loss;       // (rows)
  float* z_losses;         // (rows)
  float* greedy;           // (rows), or nullptr
  int64_t vocab;
  double z_weight;
  Gradient gradient;
  TanhCap cap;
};

// One block per row, last row first: the GEMM before has just written it, and the next GEMM begins with the first row.
template <class T, int kWidth, Cap kCap>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm<kCap>) loss_rows(Chunk<T> chunk) {
  const Logit<kCap> logit{chunk.cap};
  const int64_t n = gridDim.x - 1 - blockIdx.x;
  T* const row = chunk.logits + n * chunk.vocab;
  const int32_t target = chunk.targets[n];
  if (!counts(target, chunk.vocab)) {
    if (threadIdx.x == 0) chunk.token_loss[n] = chunk.z_losses[n] = 0.0f;
    if (chunk.gradient == Gradient::kNo) return;
    for (int64_t i = int64_t{threadIdx.x} * kWidth; i < chunk.vocab; i = column<kWidth>(i, 1)) {
      store(row + i, Vec<kWidth>{});
    }
    return;
  }
  __shared__ float log_z_of_row, factor_of_row;
  const float2 found = greatest_and_sum<T, kWidth>(row, chunk.vocab, logit);
  if (threadIdx.x == 0) {
    const double log_z = double(found.x) + std::log(double(found.y));
    chunk.token_loss[n] = static_cast<float>(log_z - double(logit(unpack(row[target])[0])));
    chunk.z_losses[n] = static_cast<float>(chunk.z_weight * log_z * log_z);
    log_z_of_row = static_cast<float>(log_z);
    factor_of_row = static_cast<float>(1 + 2 * chunk.z_weight * log_z);
  }
  if (chunk.gradient == Gradient::kNo) return;
  __syncthreads();  // row[target] must be read before the row is written
  to_gradient<T, kWidth>(row, chunk.vocab, target, log_z_of_row, factor_of_row, logit);
}

// One block per row, of logits that no gradient has overwritten. A cap keeps their order.
template <class T>
__global__ void __launch_bounds__(kThreads) mark_greedy(Chunk<T> chunk) {
  const int64_t n = blockIdx.x;
  const T* const row = chunk.logits + n * chunk.vocab;
  const int32_t target = chunk.targets[n];
  __shared__ float partial[kThreads / kWarp];
  float first_largest = counts(target, chunk.vocab) ? 1.0f : 0.0f;
  if (first_largest != 0) {
    const float at_target = unpack(row[target])[0];
    for (int64_t i = threadIdx.x; i < chunk.vocab; i += kThreads) {
      const float logit = unpack(row[i])[0];
      if (i < target ? logit >= at_target : logit > at_target) first_largest = 0;
    }
  }
  first_largest = block_reduce<kThreads>(first_largest, partial, [](float a, float b) { return fminf(a, b); });
  if (threadIdx.x == 0) chunk.greedy[n] = first_largest;
}

// One block, so the order of the sums is fixed.
__global__ void __launch_bounds__(kThreads)
    add_sums(const float* token_loss, const float* z_losses, const int32_t* targets, int64_t tokens, int64_t vocab,
             double* sums) {
  __shared__ double partial[3][kThreads / kWarp];
  double loss = 0, z_loss = 0, count = 0;
  for (int64_t n = threadIdx.x; n < tokens; n += kThreads) {
    loss += double(token_loss[n]);
    z_loss += double(z_losses[n]);
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

HeadChunk CudaOps::head_chunk(int64_t tokens, int64_t vocab, DType act) const {
  return {GpuHeadScratch::chunk_rows(tokens, vocab, act, logits_bytes_), act};
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
    const Tensor logits(memory, act, {end - begin, vocab}), dlogits = logits;
    do_gemm(stream, {.a = hidden, .b = args.weight, .c = logits, .trans_b = Transpose::kYes});
    with_act_type(act, [&]<class T>(T) {
      const Chunk<T> chunk{.logits = logits.as<T>(),
                           .targets = targets + begin,
                           .token_loss = token_loss + begin,
                           .z_losses = z_losses + begin,
                           .greedy = args.greedy ? args.greedy.as<float>() + begin : nullptr,
                           .vocab = vocab,
                           .z_weight = double(args.z_weight),
                           .gradient = args.dhidden ? Gradient::kYes : Gradient::kNo,
                           .cap = TanhCap(args.cap)};
      with_vec_width<T>(vocab, [&]<int kWidth>() {
        launch({"linear_cross_entropy", static_cast<unsigned>(end - begin), kThreads}, handle(stream),
               args.cap > 0 ? loss_rows<T, kWidth, Cap::kYes> : loss_rows<T, kWidth, Cap::kNo>, chunk);
      });
      if (chunk.greedy != nullptr) {
        launch({"linear_cross_entropy, greedy", static_cast<unsigned>(end - begin), kThreads}, handle(stream),
               mark_greedy<T>, chunk);
      }
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

// Chunked linear + cross-entropy. Per chunk of rows: the logits by a GEMM (f32), their statistics and dlogits, then the
// chunk's contributions to dhidden and dweight by two more GEMMs. Logits exist for one chunk only. In bf16, dlogits are
// rounded to bf16 before their GEMMs.
#include <algorithm>
#include <cmath>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/partition.h"
#include "backend/cpu/simd.h"
#include "base/math.h"

namespace tokamak {
namespace {

using namespace simd;

// Large enough that reading and writing dweight once per chunk costs little compared with the GEMMs.
constexpr int64_t kLogitsBytes = int64_t{64} << 20;
constexpr int64_t kMinRows = 64;

int64_t chunk_rows(int64_t tokens, int64_t vocab) {
  const int64_t row = std::max<int64_t>(1, vocab) * size_of(DType::kF32);
  return std::min(tokens, std::max(kMinRows, kLogitsBytes / row / kMinRows * kMinRows));
}

// The workspace of one call.
struct Chunk {
  int64_t rows;     // of a full chunk
  float* logits;    // (rows, V)
  void* dlogits;    // (rows, V) act; in f32 the logits themselves
  float* z_losses;  // (N)
  int64_t bytes;

  Chunk(std::byte* memory, int64_t tokens, int64_t vocab, DType act) : rows(chunk_rows(tokens, vocab)) {
    const int64_t logits_bytes = round_up(rows * vocab * size_of(DType::kF32), 256);
    const int64_t dlogits_bytes = act == DType::kF32 ? 0 : round_up(rows * vocab * size_of(act), 256);
    logits = reinterpret_cast<float*>(memory);
    dlogits = memory + (act == DType::kF32 ? 0 : logits_bytes);
    z_losses = reinterpret_cast<float*>(memory + logits_bytes + dlogits_bytes);
    bytes = logits_bytes + dlogits_bytes + tokens * size_of(DType::kF32);
  }
};

// Calls body(first, lanes) along a row of `count`; lanes == kLanes except for the last call.
template <class Body>
void for_each_vector(int64_t count, const Body& body) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) body(i, int64_t{kLanes});
  if (i < count) body(i, count - i);
}

Vec load_lanes(const float* from, int64_t lanes, float rest) {
  return lanes == kLanes ? load(from) : load_part(from, lanes, rest);
}

// log sum exp of a row.
double log_sum_exp(const float* x, int64_t vocab) {
  Vec top = splat(x[0]);
  for_each_vector(vocab, [&](int64_t i, int64_t lanes) { top = maximum(top, load_lanes(x + i, lanes, x[0])); });
  float highest = top[0];
  for (int i = 1; i < kLanes; ++i) highest = std::max(highest, top[i]);
  Vec total{};
  for_each_vector(vocab, [&](int64_t i, int64_t lanes) {
    // Lanes past the end hold 2^-1000, which rounds to 0 in f32.
    total += exp2((load_lanes(x + i, lanes, highest - 1000.0f) - highest) * kLog2E);
  });
  return double(highest) + std::log(double(sum(total)));
}

// dlogits of a row; d may be x itself. `inverse_cap` is 0 without a cap, so that the cap's derivative is 1.
template <class T>
void gradient(const float* x, int64_t vocab, int32_t target, float log_z, float factor, float inverse_cap, T* d) {
  const float at_target = x[target];
  const auto slope = [&](Vec logits) {
    // A product with 0 would make NaN of an infinite logit.
    return inverse_cap == 0 ? splat(1.0f) : 1.0f - logits * inverse_cap * (logits * inverse_cap);
  };
  for_each_vector(vocab, [&](int64_t i, int64_t lanes) {
    const Vec logits = load_lanes(x + i, lanes, 0.0f);
    const Vec v = factor * exp2((logits - log_z) * kLog2E) * slope(logits);
    lanes == kLanes ? store(d + i, v) : store_part(d + i, lanes, v);
  });
  const float d_target = factor * exp2(splat((at_target - log_z) * kLog2E))[0] - 1.0f;
  d[target] = from_float<T>(d_target * slope(splat(at_target))[0]);
}

// Whether no logit is larger than the target's, and none before it as large.
bool is_first_largest(const float* x, int64_t vocab, int32_t target) {
  const float at_target = x[target];
  const auto below = [&](float logit) { return logit < at_target; };
  const auto no_larger = [&](float logit) { return logit <= at_target; };
  return std::all_of(x, x + target, below) && std::all_of(x + target, x + vocab, no_larger);
}

// Row n of the batch, whose logits are x; they are capped in place.
template <class T>
void loss_row(const LinearCrossEntropy& args, int64_t n, float* x, float* z_loss, T* d) {
  const int64_t vocab = args.weight.dim(0);
  const int32_t target = args.targets.as<int32_t>()[n];
  float& loss = args.token_loss.as<float>()[n];
  loss = *z_loss = 0.0f;
  if (args.greedy) args.greedy.as<float>()[n] = 0.0f;
  if (target >= 0) {
    if (args.cap > 0) {
      const TanhCap cap(args.cap);
#pragma omp simd
      for (int64_t i = 0; i < vocab; ++i) x[i] = cap(x[i]);
    }
    const double log_z = log_sum_exp(x, vocab), z_weight = double(args.z_weight);
    loss = static_cast<float>(log_z - double(x[target]));
    *z_loss = static_cast<float>(z_weight * log_z * log_z);
    if (args.greedy && is_first_largest(x, vocab, target)) args.greedy.as<float>()[n] = 1.0f;
    const auto factor = static_cast<float>(1 + 2 * z_weight * log_z);
    const float inverse_cap = args.cap > 0 ? 1.0f / args.cap : 0.0f;
    if (args.dhidden) gradient(x, vocab, target, static_cast<float>(log_z), factor, inverse_cap, d);
  } else if (args.dhidden) {
    std::fill(d, d + vocab, T(0.0f));
  }
}

}  // namespace

int64_t cross_entropy_workspace(const Workload& w) { return Chunk(nullptr, w.tokens, w.vocab, w.compute).bytes; }

HeadChunk CpuOps::head_chunk(int64_t tokens, int64_t vocab, DType) const {
  return {chunk_rows(tokens, vocab), DType::kF32};
}

void CpuOps::do_linear_cross_entropy(Stream&, const LinearCrossEntropy& args) {
  const int64_t tokens = args.hidden.dim(0), vocab = args.weight.dim(0);
  const DType act = args.hidden.dtype();
  const auto* targets = args.targets.as<int32_t>();
  for (int64_t n = 0; n < tokens; ++n) {
    TOKAMAK_CHECK(-1 <= targets[n] && targets[n] < vocab, "target ", n, " is ", targets[n], ", vocabulary of ", vocab);
  }
  const Chunk chunk(scratch<std::byte>(workspace(), Chunk(nullptr, tokens, vocab, act).bytes), tokens, vocab, act);
  for (int64_t begin = 0; begin < tokens; begin += chunk.rows) {
    const int64_t end = std::min(tokens, begin + chunk.rows);
    const MatrixView hidden(args.hidden.rows(begin, end)), weight(args.weight);
    const MatrixView logits(Tensor(chunk.logits, DType::kF32, {end - begin, vocab}));
    gemm_->run({.a = hidden, .b = weight.transposed(), .c = logits});
    with_act_type(act, [&]<class T>(T) {
      parallel_for(end - begin, 1, [&](int64_t first, int64_t last) {
        for (int64_t r = first; r < last; ++r) {
          loss_row(args, begin + r, chunk.logits + r * vocab, chunk.z_losses + begin + r,
                   static_cast<T*>(chunk.dlogits) + r * vocab);
        }
      });
    });
    if (!args.dhidden) continue;
    const MatrixView dlogits(Tensor(chunk.dlogits, act, {end - begin, vocab}));
    gemm_->run({.a = dlogits, .b = weight, .c = MatrixView(args.dhidden.rows(begin, end))});
    gemm_->run({.a = dlogits.transposed(),
                .b = hidden,
                .c = MatrixView(args.dweight),
                .accumulate = begin > 0 || args.write == Write::kAccumulate});
  }
  auto* sums = args.sums.as<double>();
  for (int64_t n = 0; n < tokens; ++n) {
    sums[kSumLoss] += double(args.token_loss.as<float>()[n]);
    sums[kSumZLoss] += double(chunk.z_losses[n]);
    sums[kSumTargets] += targets[n] >= 0 ? 1.0 : 0.0;
  }
}

}  // namespace tokamak

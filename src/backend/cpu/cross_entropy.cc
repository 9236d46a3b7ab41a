// The head and its loss, in chunks of rows: logits, statistics and dlogits of one chunk, then their products.
#include <algorithm>
#include <cmath>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/workspace.h"
#include "base/parallel_for.h"

namespace tokamak {

namespace {

constexpr int64_t kLogitsBytes = int64_t{64} << 20;

int64_t align(int64_t bytes) { return (bytes + 255) / 256 * 256; }

// Rows of a chunk: as many as keep the f32 logits below kLogitsBytes, a multiple of 64.
int64_t chunk_rows(int64_t tokens, int64_t vocab) {
  const int64_t rows = std::max<int64_t>(64, kLogitsBytes / (4 * vocab) / 64 * 64);
  return std::min(tokens, rows);
}

int64_t logits_bytes(int64_t tokens, int64_t vocab) { return align(chunk_rows(tokens, vocab) * vocab * 4); }

}  // namespace

int64_t cross_entropy_workspace(const Workload& w) {
  const int64_t logits = logits_bytes(w.tokens, w.vocab);
  return logits + align(w.tokens * 4);
}

void CpuOps::do_linear_cross_entropy(Stream&, const LinearCrossEntropy& args) {
  const int64_t tokens = args.hidden.dim(0), vocab = args.weight.dim(0), rows = chunk_rows(tokens, vocab);
  std::byte* memory = scratch<std::byte>(workspace(), logits_bytes(tokens, vocab) + align(tokens * 4));
  auto* z_losses = reinterpret_cast<float*>(memory + logits_bytes(tokens, vocab));
  auto* losses = args.token_loss.as<float>();
  const auto* targets = args.targets.as<int32_t>();
  for (int64_t begin = 0; begin < tokens; begin += rows) {
    const int64_t end = std::min(tokens, begin + rows);
    GemmEngine::Call product;
    product.a = MatrixView(args.hidden.rows(begin, end));
    product.b = MatrixView(args.weight).transposed();
    product.c = MatrixView(Tensor(memory, DType::kF32, {end - begin, vocab}));
    gemm_->run(product);
    parallel_for(end - begin, 1, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        float* x = reinterpret_cast<float*>(memory) + r * vocab;
        const int32_t target = targets[begin + r];
        float maximum = x[0];
        for (int64_t j = 1; j < vocab; ++j) maximum = std::max(maximum, x[j]);
        double sum = 0;
        for (int64_t j = 0; j < vocab; ++j) sum += std::exp(x[j] - maximum);
        const float log_z = maximum + static_cast<float>(std::log(sum));
        losses[begin + r] = target >= 0 ? log_z - x[target] : 0.0f;
        z_losses[begin + r] = target >= 0 ? args.z_weight * log_z * log_z : 0.0f;
        if (!args.dhidden) continue;
        const float factor = target >= 0 ? 1 + 2 * args.z_weight * log_z : 0.0f;
        for (int64_t j = 0; j < vocab; ++j) {
          const float d = factor * std::exp(x[j] - log_z) - (j == target ? 1.0f : 0.0f);
          if (args.hidden.dtype() == DType::kBF16) {
            reinterpret_cast<bf16*>(x)[j] = bf16(d);
          } else {
            x[j] = d;
          }
        }
      }
    });
    if (!args.dhidden) continue;
    MatrixView dlogits(Tensor(memory, args.hidden.dtype(), {end - begin, vocab}));
    if (args.hidden.dtype() == DType::kBF16) dlogits.row_stride = 2 * vocab;
    GemmEngine::Call dhidden;
    dhidden.a = dlogits;
    dhidden.b = MatrixView(args.weight);
    dhidden.c = MatrixView(args.dhidden.rows(begin, end));
    gemm_->run(dhidden);
    GemmEngine::Call dweight;
    dweight.a = dlogits.transposed();
    dweight.b = MatrixView(args.hidden.rows(begin, end));
    dweight.c = MatrixView(args.dweight);
    dweight.accumulate = begin > 0 || args.write == Write::kAccumulate;
    gemm_->run(dweight);
  }
  auto* sums = args.sums.as<double>();
  for (int64_t n = 0; n < tokens; ++n) {
    sums[kSumLoss] += static_cast<double>(losses[n]);
    sums[kSumZLoss] += static_cast<double>(z_losses[n]);
    sums[kSumTargets] += targets[n] >= 0 ? 1 : 0;
  }
}

}  // namespace tokamak

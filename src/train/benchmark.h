// How fast a run's step is, against what the same machine's GEMMs can do in the same minute. Random tokens, no files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/profile.h"
#include "train/assembly.h"
#include "train/batch_shape.h"

namespace tokamak {

// One GEMM of a step, C (m, n) = op(A) op(B) with inner size k, and how often a micro-batch runs it.
struct GemmShape {
  std::string name;  // "qkv forward"
  int64_t m = 0, n = 0, k = 0;
  Transpose trans_a = Transpose::kNo, trans_b = Transpose::kNo;
  DType c = DType::kBF16;
  int64_t count = 0;

  double flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
};

// Every GEMM of one micro-batch's forward and backward, the head's in chunks of `head_rows` rows.
std::vector<GemmShape> step_gemms(const ModelConfig& config, int64_t tokens, int64_t head_rows, DType compute);

// The call of such a GEMM, on operands of at least its sizes: the dW of a linear layer accumulates, the others
// overwrite.
Gemm call_of(const GemmShape& g, Tensor a, Tensor b, Tensor c);

// One memory for the operands of any of the GEMMs.
struct TimedOperands {
  MemoryPlan::Slot a, b, c;
};
TimedOperands plan_operands(const std::vector<GemmShape>& gemms, DType compute, MemoryPlan& plan);

// Standard normals into x (f32 or bf16), with an f32 scratch. Constants would draw less power and run faster: 13 % on
// an H200.
void fill_random(Ops& ops, Stream& stream, Tensor x, Tensor scratch);

double median(std::vector<double> values);

struct BenchmarkResult {
  double gemm_rate = 0;          // FLOP/s: FLOPs of all GEMMs of a step over the sum of their times, each run alone
  double tokens_per_second = 0;  // of all ranks
  double step_seconds = 0;       // median
  int64_t tokens_per_step = 0;
  std::vector<std::pair<GemmShape, double>> gemms;  // with the rate of each
  Profile profile;                                  // of one step
};

// Collective; takes the memory of plan_operands besides the assembly's. Each round times all GEMM shapes and then a
// step, so that both see the same load of other processes; the medians over `rounds` are returned. A step has the
// micro-batches of `shape` and an optimizer update.
BenchmarkResult run_benchmark(Assembly& assembly, const BatchShape& shape, int64_t rounds);

}  // namespace tokamak

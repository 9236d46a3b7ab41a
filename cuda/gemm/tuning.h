// Finds the fastest cuBLASLt algorithm for each GEMM by timing at first use, and caches it in a file for later runs.
// The winner may change from run to run, and with it the last bits. So tuning and runtime.deterministic exclude each
// other. Each run begins with a cold L2 cache: in a step, most operands were last used many kernels ago.
#pragma once

#include <functional>
#include <vector>

#include "backend/options.h"
#include "cuda/gemm/choices.h"
#include "cuda/gemm/plan.h"

namespace tokamak {

class GemmTuning {
 public:
  static constexpr int kCandidates = 16;  // the first of the heuristic's ranking are timed

  // The cache for the current GPU and library is ~/.cache/tokamak/gemm-NAME-SMS-VERSION, or under XDG_CACHE_HOME; with
  // runtime.tf32 or nccl_max_ctas it is a separate file.
  explicit GemmTuning(const RuntimeOptions& options);

  // Runs a GEMM by this algorithm with these operands. Any status but success: the algorithm does not support it.
  using Run = std::function<cublasStatus_t(const cublasLtMatmulAlgo_t&, const GemmOperands&)>;

  // The cached algorithm, or the fastest of `algorithms` (best guess first). Timing first waits for the work of all
  // streams. A GEMM that only writes its output is timed in place, because its real run does so again. One that adds to
  // its output is timed in temporary memory, so that the output keeps its contents. If memory is missing, or no
  // algorithm runs, the result is the first algorithm.
  cublasLtMatmulAlgo_t fastest(const GemmProblem& problem, const std::vector<cublasLtMatmulAlgo_t>& algorithms,
                               int64_t output_bytes, const GemmOperands& operands, const Run& run, cudaStream_t stream);

 private:
  GemmChoices choices_;
};

}  // namespace tokamak

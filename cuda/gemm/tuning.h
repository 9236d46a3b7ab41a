// The fastest of cuBLASLt's algorithms for each GEMM, found by timing them at its first use and kept in a file, so
// that the next run starts with them. Which one wins may change from run to run, and with it the last bits: so tuning
// and runtime.deterministic exclude each other.
#pragma once

#include <functional>
#include <vector>

#include "backend/options.h"
#include "cuda/gemm/choices.h"
#include "cuda/gemm/plan.h"

namespace tokamak {

class GemmTuning {
 public:
  static constexpr int kCandidates = 16;  // of the heuristic's ranking

  // Kept for the current GPU and library in ~/.cache/tokamak/gemm-NAME-SMS-VERSION, or under XDG_CACHE_HOME; with
  // runtime.tf32 or nccl_max_ctas in a file of its own.
  explicit GemmTuning(const RuntimeOptions& options);

  // Runs a GEMM with these operands; a status other than success: not by this algorithm.
  using Run = std::function<cublasStatus_t(const cublasLtMatmulAlgo_t&, const GemmOperands&)>;

  // The algorithm that the file has, or the fastest of `algorithms` (best guess first). Host and GPU wait for each
  // other here. The operands' output keeps its contents: what is computed goes to memory taken for that time. Where
  // there is none, or where no algorithm runs, it is the first one.
  cublasLtMatmulAlgo_t fastest(const GemmProblem& problem, const std::vector<cublasLtMatmulAlgo_t>& algorithms,
                               int64_t output_bytes, const GemmOperands& operands, const Run& run, cudaStream_t stream);

 private:
  GemmChoices choices_;
};

}  // namespace tokamak

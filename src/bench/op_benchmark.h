// Times each operation of a run's step by itself. A plain copy and a large GEMM on the same device in the same minute
// show the bounds of memory and of arithmetic.
#pragma once

#include <string>
#include <vector>

#include "plan/dry_run.h"

namespace tokamak {

struct OpTime {
  std::string name;    // "rmsnorm_backward", "gemm gate_up dw"
  double seconds = 0;  // of one call, median
  double bytes = 0;    // read and written at least: each tensor once
  double flops = 0;    // of its GEMMs; 0 for those without
};

struct OpTimes {
  double copy_rate = 0;   // bytes read and written per second
  double gemm_rate = 0;   // FLOP/s of a large square GEMM
  int64_t documents = 0;  // in attention's micro-batch
  int64_t length = 0;     // tokens of the longest document
  double attended = 0;    // tokens that a token attends to, on average
  HeadLayout heads;
  std::vector<OpTime> ops;
};

struct OpBenchmarkOptions {
  int64_t rounds = 3;         // medians are taken
  int64_t spread_bytes = 0;   // ReplayOptions::spread_bytes
  int64_t mean_document = 0;  // RandomBatchOptions::mean_document
};

// Times the operations of the run's step on `backend`, on operands of their own with random contents. Among calls that
// differ only in their operands it takes the one that moves most bytes.
OpTimes benchmark_ops(Backend& backend, DryRun& run, const OpBenchmarkOptions& options);

}  // namespace tokamak

// Measures this machine as a row of the hardware table: the operations of a config's step, and collectives by size.
// `tokamak plan --gpu FILE` predicts with it.
#pragma once

#include "bench/op_benchmark.h"
#include "comm/comm.h"
#include "plan/dry_run.h"
#include "plan/hardware.h"

namespace tokamak {

struct CalibrationOptions {
  int64_t rounds = 3;  // medians are taken
  int ranks_per_node = 1;
  DType reduce_dtype = DType::kF32;  // of gradients as they are sent
};

// Collective: the ranks share memory and cores as in a run. `dry` is the config's run.
Machine calibrate(Backend& backend, Comm& comm, DryRun& dry, const CalibrationOptions& options);

// Adds times of the operations of `dry`, a run with another micro-batch: its operands may not fit a cache, or do now.
OpTimes measure_operations(Machine& machine, Backend& backend, DryRun& dry, int64_t rounds);

}  // namespace tokamak

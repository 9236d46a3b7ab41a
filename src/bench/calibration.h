// Measures the machine at hand as a row of the hardware table: the operations of a config's step, each as long as it takes
// here, and collectives by size. `tokamak plan --gpu FILE` predicts with it.
#pragma once

#include "bench/op_benchmark.h"
#include "comm/comm.h"
#include "plan/dry_run.h"
#include "plan/hardware.h"

namespace tokamak {

struct CalibrationOptions {
  int64_t rounds = 3;  // medians are taken
  int ranks_per_node = 1;
  DType reduce_dtype = DType::kF32;  // of the gradients' way between ranks
};

// All ranks at once, as in a run, so that they share memory and cores as there. `dry` is the config's run.
Machine calibrate(Backend& backend, Comm& comm, DryRun& dry, const CalibrationOptions& options);

// Adds the operations of another run's step, with another micro-batch: a cache may hold what it needs, or may not.
OpTimes measure_operations(Machine& machine, Backend& backend, DryRun& dry, int64_t rounds);

}  // namespace tokamak

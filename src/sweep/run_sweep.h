// Starts the runs of a sweep as child processes, `tokamak train CONFIG` each, several at once if asked. The runs keep
// their own records, and the table is made from these. So a repeated start skips the runs that are over, resumes those
// that stopped, and tries those again that failed.
#pragma once

#include <string>
#include <vector>

#include "sweep/grid.h"
#include "train/stop_signal.h"

namespace tokamak {

struct SweepOptions {
  std::vector<std::string> train;  // the words before CONFIG: "mpirun", "-n", "2", "build/tokamak", "train"
  int parallel = 1;
  int devices = 0;  // GPUs of this machine, of which each of several runs at once gets a share
};

// The rows of all runs in the directory, also of earlier grids, as their records are now; writes the table.
std::vector<SweepRow> refresh_table(const std::string& directory);

// Adds runs that are new to the table, and writes all configs. Error(kConfig) if a run exists with another config
// (expect_same_config).
void prepare_sweep(const SweepPlan& plan);

// Runs what is left. Returns the exit code: 0, that of the first failure, or 75 if a run stopped or `stop` has come. A
// diverged run is no failure.
int run_sweep(const SweepPlan& plan, const SweepOptions& options, const StopSignal& stop);

}  // namespace tokamak

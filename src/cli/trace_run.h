// The config of a run that computes one step again, from a checkpoint before it, and traces it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/run_config.h"

namespace tokamak::cli {

struct TraceOptions {
  int64_t step = 0;        // 0: none
  std::string checkpoint;  // its directory
};

// The config of `path` and `overrides`, trained from the checkpoint to the step without evaluations and saves. The run
// has a directory of its own, run.output_dir-trace-STEP, so the traced run may go on meanwhile. Error(kCheckpoint) if
// there is no such checkpoint, Error(kConfig) if the step does not follow it, or is
// none of the run's.
RunConfig load_trace_run(const std::string& path, const std::vector<std::string>& overrides, const TraceOptions& trace);

}  // namespace tokamak::cli

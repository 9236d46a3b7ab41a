// Everything between a config and a run that can train or be measured: groups, memory, the auto keys, the plan.
#pragma once

#include "train/prepared_run.h"

namespace tokamak {

// Collective. Makes the groups, measures the memory that they leave, and sets the auto keys as rank 0 chooses.
// SharedError(kConfig) where the rates of this machine are unknown.
SettledRun settle_run(World& world, Backend& backend, const RunConfig& config, const GlobalBatch& batch);

// Collective. Calls settle_run, then plans the run. Logs the choice. SharedError(kDevice) if the plan does not fit.
PreparedRun prepare_run(World& world, Backend& backend, const RunConfig& config, const GlobalBatch& batch);

}  // namespace tokamak

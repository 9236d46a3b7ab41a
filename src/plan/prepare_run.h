// Everything between a config and a run that can train or be measured: groups, memory, the auto keys, the plan.
#pragma once

#include "train/prepared_run.h"

namespace tokamak {

// Collective. Makes the groups, asks for the memory they leave, and settles the auto keys as rank 0 chooses.
// SharedError(kConfig) where the rates of this machine are unknown.
SettledRun settle_run(World& world, Backend& backend, const RunConfig& config, const GlobalBatch& batch);

// Collective: that, and the plan of a training run. Logs the choice. SharedError(kDevice) where the plan does not fit.
PreparedRun prepare_run(World& world, Backend& backend, const RunConfig& config, const GlobalBatch& batch);

}  // namespace tokamak

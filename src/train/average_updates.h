// When averages of the weights are updated (config: averages): a function of the run's table, of the step, and of how
// far each average is. So a resumed run updates them as one that never stopped.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/run_state.h"
#include "optim/options.h"
#include "train/run_table.h"

namespace tokamak {

// The weight of each average's update after `step` (Averages::update); notes these updates in state.averages. Averages
// that are not there begin with the first step from their start on, whatever the run did before. Later updates are
// `every` steps apart. A step whose update of the weights is skipped (resilience.max_bad_steps) counts with the weights
// that it left unchanged. Error(kConfig) if a start is no step of the run.
std::vector<double> average_weights(const std::vector<AverageOptions>& options, const RunTable& table, int64_t step,
                                    RunState& state);

}  // namespace tokamak

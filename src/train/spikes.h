// Judges whether a step's loss, or the logarithm of its gradient norm, is far above those of the steps before. The
// robust z-score is (x - median) / (1.4826 MAD), with the median of the distances from the median (Iglewicz and
// Hoaglin 1993). 1.4826 makes it the standard deviation of normal numbers. Values far below are no spikes. It is a
// pure function of the outcomes in the run's state: a resumed run judges alike, and all ranks do.
#pragma once

#include <optional>
#include <string>

#include "backend/ops.h"
#include "checkpoint/run_state.h"
#include "monitor/interval.h"
#include "resilience/options.h"

namespace tokamak {

struct Spike {
  int64_t step = 0;    // the first that spiked
  int64_t sample = 0;  // its first
  int64_t steps = 0;   // so far, with those that are not finite
  std::string text;    // of the last one: "loss 9.31 is 41 deviations above 3.87, ..."
};

// Adds the outcome, which is finite, of the step that began with `first_sample` to the window. Returns the spike if
// this is its options.consecutive-th step. A step between them that is not finite neither counts nor ends the spike.
std::optional<Spike> see_outcome(const SpikeOptions& options, const StepOutcome& outcome, int64_t first_sample,
                                 OutcomeWindow& window);

// Whether the last steps spike, and the next ones decide if the run goes back to before them.
bool may_go_back(const SpikeOptions& options, const OutcomeWindow& window);

// Above these a step spikes; infinite while the window is less than half full.
StepLimits spike_limits(const SpikeOptions& options, const OutcomeWindow& window);

}  // namespace tokamak

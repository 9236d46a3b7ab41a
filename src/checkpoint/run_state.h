// The state of a run at a step. It is saved, restored and compared as a whole: nothing else of the trainer survives a
// restart.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"

namespace tokamak {

// How far an average of the weights is. With the tokens of each step, this determines its next update.
struct AverageProgress {
  std::string name;
  int64_t updates = 0;  // so far, at least 1
  int64_t step = 0;     // after which the last one was

  bool operator==(const AverageProgress&) const = default;
};

// The latest steps' outcomes, by which spikes are judged (train/spikes.h).
struct OutcomeWindow {
  std::vector<double> losses, log_norms;  // of the gradient; the oldest first, finite, equally many
  int64_t spiking = 0;                    // the last finite steps that spike, in a row
  int64_t spike_step = 0;                 // the first of them
  int64_t spike_sample = 0;               // its first sample

  bool operator==(const OutcomeWindow&) const = default;
};

// Samples that the run does not read, since its loss spiked there.
struct LeftOut {
  int64_t step = 0;          // the step that would begin with them; its row of stages numbers them
  int64_t first_sample = 0;  // likewise the first sample of that step
  int64_t samples = 0;
  std::string reason;

  std::string text() const {  // for people
    return str(samples, " samples from sample ", first_sample, " on, first read in step ", step, " (", reason, ")");
  }
  bool operator==(const LeftOut&) const = default;
};

struct RunState {
  int64_t step = 0;                            // optimizer steps done
  int64_t tokens = 0;                          // trained on so far
  int64_t next_sample = 0;                     // first sample of the next step
  int64_t optimizer_start = 0;                 // step at which the optimizer's state was zero; 0 unless it started over
  std::vector<AverageProgress> averages = {};  // those that have begun, each once
  bool owes_evaluation = false;                // a stop has cut the validation, evaluations or samples of this step
  OutcomeWindow outcomes = {};                 // of steps up to this one, in its row of stages
  std::vector<LeftOut> left_out = {};          // in the order of the rollbacks

  const AverageProgress* find_average(std::string_view name) const {
    for (const AverageProgress& one : averages) {
      if (one.name == name) return &one;
    }
    return nullptr;
  }

  bool operator==(const RunState&) const = default;
};

}  // namespace tokamak

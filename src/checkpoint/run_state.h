// The state of a run at a step. It is saved, restored and compared as a whole: nothing else of the trainer survives a
// restart.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

// How far an average of the weights is. With the tokens of each step, this determines its next update.
struct AverageProgress {
  std::string name;
  int64_t updates = 0;  // so far, at least 1
  int64_t step = 0;     // after which the last one was

  bool operator==(const AverageProgress&) const = default;
};

struct RunState {
  int64_t step = 0;                            // optimizer steps done
  int64_t tokens = 0;                          // trained on so far
  int64_t next_sample = 0;                     // first sample of the next step
  int64_t optimizer_start = 0;                 // step at which the optimizer's state was zero; 0 unless it started over
  std::vector<AverageProgress> averages = {};  // those that have begun, each once
  bool owes_evaluation = false;                // a stop has cut the validation, evaluations or samples of this step

  const AverageProgress* find_average(std::string_view name) const {
    for (const AverageProgress& one : averages) {
      if (one.name == name) return &one;
    }
    return nullptr;
  }

  bool operator==(const RunState&) const = default;
};

}  // namespace tokamak

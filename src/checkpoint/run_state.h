// The state of a run at a step. It is saved, restored and compared as a whole: nothing else of the trainer survives a
// restart.
#pragma once

#include <cstdint>

namespace tokamak {

struct RunState {
  int64_t step = 0;             // optimizer steps done
  int64_t tokens = 0;           // trained on so far
  int64_t next_sample = 0;      // first sample of the next step
  int64_t optimizer_start = 0;  // step at which the optimizer's state was zero; 0 unless it started over

  bool operator==(const RunState&) const = default;
};

}  // namespace tokamak

// What came of one optimizer step.
#pragma once

#include <cstdint>

namespace tokamak {

struct StepOutcome {
  int64_t step = 0;
  double lr = 0;
  double loss = 0;       // mean over the global batch
  double z_loss = 0;     //
  double grad_norm = 0;  // global, before clipping
  bool applied = true;   // false: not finite, weights untouched
  double attended = 0;   // tokens that a token of this rank attended to, on average
  double time = 0;       // now_seconds() when the step had been enqueued
};

}  // namespace tokamak

// Counts steps whose loss or gradient was not finite. Such a step leaves the weights alone; too many in a row end the
// run.
#pragma once

#include <cstdint>

#include "monitor/step_outcome.h"

namespace tokamak {

class BadSteps {
 public:
  explicit BadSteps(int64_t most_in_a_row) : most_in_a_row_(most_in_a_row) {}

  // SharedError(kNumerics) when a bad step is the last one tolerated: all ranks see the same outcomes.
  void see(const StepOutcome& outcome);

 private:
  int64_t most_in_a_row_;
  int64_t in_a_row_ = 0;
};

}  // namespace tokamak

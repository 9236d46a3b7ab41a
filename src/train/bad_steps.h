// Counts bad steps: those that the optimizer has skipped, or made with zeros in the gradient. Too many in a row end the
// run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "monitor/interval.h"

namespace tokamak {

class BadSteps {
 public:
  // `advice` is called when the run ends, with the first step of the row: a hint for the error. Collective.
  BadSteps(int64_t most_in_a_row, std::function<std::string(int64_t first)> advice)
      : most_in_a_row_(most_in_a_row), advice_(std::move(advice)) {}

  // SharedError(kNumerics) when a bad step is the last one tolerated: all ranks see the same outcomes.
  void see(const StepOutcome& outcome);
  void forget() { in_a_row_ = 0; }
  int64_t in_a_row() const { return in_a_row_; }                      // up to the last step seen
  std::string advice(int64_t first) const { return advice_(first); }  // collective

 private:
  int64_t most_in_a_row_;
  std::function<std::string(int64_t)> advice_;
  int64_t in_a_row_ = 0;
};

}  // namespace tokamak

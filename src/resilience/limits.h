// How long a phase may go without progress: 8 times its longest pause so far, within bounds. What was never measured, a
// first step with its warm-up of libraries, a first save on a disk of unknown speed, gets five times the lower bound.
#pragma once

#include <string>

#include "resilience/options.h"
#include "resilience/progress.h"

namespace tokamak {

struct Limits {
  static constexpr double kGaps = 8;
  static constexpr double kUnmeasured = 5;

  double floor = 0;  // seconds, as the next
  double ceiling = 0;

  static Limits of(const ResilienceOptions& options) {
    return {options.watchdog_min.seconds, options.watchdog_max.seconds};
  }
  double of_phase(const PhaseGaps& gaps) const;
  std::string text(const PhaseGaps& gaps) const;  // how it comes about
};

}  // namespace tokamak

// Options of what ends a run that has gone wrong.
#pragma once

#include <cstdint>

#include "base/fields.h"

namespace tokamak {

struct ResilienceOptions {
  int64_t max_bad_steps = 10;
  TrainingLength watchdog_min = TrainingLength::seconds(120);
  TrainingLength watchdog_max = TrainingLength::seconds(1800);

  bool watchdog_on() const { return watchdog_max.value > 0; }

  template <class Visitor>
  void fields(Visitor& v) {
    v("max_bad_steps", max_bad_steps,
      "consecutive steps with a non-finite loss or gradient, each skipped, before the run aborts (exit 7)");
    v("watchdog_min", watchdog_min,
      "a run in which no rank makes progress for so long, or for 8 times the longest pause so far in the same phase "
      "(start, load, step, validation, save ...) where that is more, ends with exit 6 and a report; five times as long "
      "in a phase that was never passed before; shorter finds a hang earlier and may take a slow disk for one");
    v("watchdog_max", watchdog_max, "the longest that the watchdog waits, whatever the pauses were; 0: no watchdog");
  }
};

}  // namespace tokamak

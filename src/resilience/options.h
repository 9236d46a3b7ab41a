// Options of what ends a run that has gone wrong.
#pragma once

#include <cstdint>

#include "base/fields.h"

namespace tokamak {

struct ResilienceOptions {
  int64_t max_bad_steps = 10;
  int64_t recompute_interval = 0;
  bool verify_state = false;
  Duration stop_deadline;
  Duration watchdog_min{120};
  Duration watchdog_max{1800};

  bool watchdog_on() const { return !watchdog_max.is_none(); }

  template <class Visitor>
  void fields(Visitor& v) {
    v("max_bad_steps", max_bad_steps,
      "consecutive steps with a non-finite loss or gradient, each skipped, before the run aborts (exit 7)");
    v("recompute_interval", recompute_interval,
      "steps between those whose gradients are computed twice, from data read twice, and compared bit for bit; if "
      "they differ, the ranks are named and a third computation decides; where it agrees with neither, or a host differs "
      "again, the run ends (exit 7) before the update; such a step takes twice as long; a GPU needs "
      "runtime.deterministic; 0: never");
    v("verify_state", verify_state,
      "checksum weights and moments after each update, and again before the next and before each save; what has "
      "changed in between ends the run (exit 7) before it is saved; it reads the state twice a step, which is time "
      "where a step has few tokens");
    v("stop_deadline", stop_deadline,
      "end at once (exit 6), saved or not, this long after the first signal to stop; what is committed is safe; none: "
      "the save takes the time it takes");
    v("watchdog_min", watchdog_min,
      "a run in which no rank makes progress for so long, or for 8 times the longest pause so far in the same phase "
      "(start, load, step, validation, save ...) where that is more, ends with exit 6 and a report; five times as long "
      "in a phase that was never passed before; shorter finds a hang earlier and may take a slow disk for one");
    v("watchdog_max", watchdog_max, "the longest that the watchdog waits, whatever the pauses were; none: no watchdog");
  }
};

}  // namespace tokamak

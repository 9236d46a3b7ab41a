// Options of the checks and limits that end a run that has gone wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.h"

namespace tokamak {

// What happens to a step whose loss or gradient is not finite. Its update is skipped, the run ends, or the gradient's
// values that are not finite become zero.
enum class NonFiniteAction { kSkip, kStop };
inline const std::vector<std::string>& enum_names(NonFiniteAction) {
  static const std::vector<std::string> names = {"skip", "stop"};
  return names;
}

struct ResilienceOptions {
  NonFiniteAction non_finite = NonFiniteAction::kSkip;
  int64_t max_bad_steps = 10;
  int64_t recompute_interval = 0;
  bool verify_state = false;
  Duration stop_deadline;
  Duration watchdog_min{120};
  Duration watchdog_max{1800};

  bool watchdog_on() const { return !watchdog_max.is_none(); }

  template <class Visitor>
  void fields(Visitor& v) {
    v("non_finite", non_finite,
      "what to do with a step whose loss or gradient is not finite, after the first such value is traced to its "
      "operation: skip its update, or stop (exit 7)");
    v("max_bad_steps", max_bad_steps,
      "consecutive steps with a non-finite loss or gradient before the run ends (exit 7); each is skipped");
    v("recompute_interval", recompute_interval,
      "steps between those that compute gradients twice, in twice the time, and compare the bits; a GPU needs "
      "runtime.deterministic; 0: never");
    v("verify_state", verify_state,
      "checksum weights and moments, not averages, between updates and before saves; a change ends the run (exit 7); "
      "reads the state twice a step");
    v("stop_deadline", stop_deadline,
      "time from the first stop signal to the end (exit 6), even without the save; none: the save may take any time");
    v("watchdog_min", watchdog_min,
      "least time without progress that ends the run (exit 6); longer in new phases and after pauses (8 times the longest); "
      "short: slow disks look like hangs");
    v("watchdog_max", watchdog_max,
      "longest time without progress before the watchdog ends the run; none: no watchdog");
  }
};

}  // namespace tokamak

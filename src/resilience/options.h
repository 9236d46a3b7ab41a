// Options of the checks and limits that end a run that has gone wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.h"

namespace tokamak {

// A step whose loss or gradient is not finite: its update is skipped, or made with zeros for the gradient's values that
// are not finite, or the run ends.
enum class NonFiniteAction { kSkip, kZero, kStop };
inline const std::vector<std::string>& enum_names(NonFiniteAction) {
  static const std::vector<std::string> names = {"skip", "zero", "stop"};
  return names;
}

// A spike of the loss or of the gradient norm: it is logged, its updates are skipped, or the run goes back.
enum class SpikeAction { kNone, kLog, kSkip, kRollback };
inline const std::vector<std::string>& enum_names(SpikeAction) {
  static const std::vector<std::string> names = {"none", "log", "skip", "rollback"};
  return names;
}

struct SpikeOptions {
  SpikeAction action = SpikeAction::kLog;
  int64_t window = 128;
  double threshold = 8;
  int64_t consecutive = 2;
  AutoInt skip_samples;
  int64_t max_rollbacks = 8;

  template <class Visitor>
  void fields(Visitor& v) {
    v("action", action,
      "if loss or gradient norm jumps: log: an event; skip: also no update; rollback: back to a checkpoint before it, "
      "without its samples; none (docs/stability.md)");
    v("window", window, "latest steps, which say what is usual; no step is judged until half of them are known");
    v("threshold", threshold,
      "robust standard deviations above the window's median (of the norm: its logarithm) that make a step spike; lower: "
      "smaller spikes are found, and false ones");
    v("consecutive", consecutive,
      "spiking steps in a row before the event and a rollback; skip leaves out the update of each from the first on");
    v("skip_samples", skip_samples,
      "sequences left out after a rollback, from the spike's first step on, rounded up to whole steps; auto: those of its "
      "steps and of 32 more");
    v("max_rollbacks", max_rollbacks, "rollbacks over all starts of a run; the next spike ends it (exit 7)");
  }
};

struct ResilienceOptions {
  NonFiniteAction non_finite = NonFiniteAction::kSkip;
  int64_t max_bad_steps = 10;
  SpikeOptions spike;
  int64_t recompute_interval = 0;
  bool verify_state = false;
  Duration stop_deadline;
  Duration watchdog_min{120};
  Duration watchdog_max{1800};

  bool watchdog_on() const { return !watchdog_max.is_none(); }

  template <class Visitor>
  void fields(Visitor& v) {
    v("non_finite", non_finite,
      "if loss or gradient is not finite: skip: no update; zero: update, with zeros for bad values; stop: exit 7; the first such "
      "step in a row is traced");
    v("max_bad_steps", max_bad_steps,
      "consecutive steps whose update was skipped (not finite, or a spike with action: skip) or zeroed before the run ends "
      "(exit 7)");
    v("spike", spike, "a loss or gradient norm far above those of the steps before");
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

// The two clocks of a start: where the time before the first step goes, and training time after it.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "base/clock.h"
#include "monitor/record.h"

namespace tokamak {

// Consecutive phases from the start of the process to the first step.
class StartupClock {
 public:
  StartupClock() : StartupClock(0) {}
  explicit StartupClock(double age) : begin_(now_seconds() - age), last_(begin_) {}  // of the process, in seconds

  // Ends a phase, which began with the end of the last one.
  void done(const std::string& phase) {
    const double now = now_seconds();
    phases_.push_back({"startup/" + phase, now - last_});
    last_ = now;
  }

  int64_t begin_time() const {  // milliseconds since 1970
    return unix_milliseconds() - static_cast<int64_t>(std::llround(1e3 * (now_seconds() - begin_)));
  }
  std::vector<NamedValue> values() const {  // "startup/PHASE" in seconds, in their order; then "startup/seconds"
    std::vector<NamedValue> values = phases_;
    values.push_back({"startup/seconds", last_ - begin_});
    return values;
  }

 private:
  double begin_;
  double last_;  // end of the last phase
  std::vector<NamedValue> phases_;
};

// Wall time without validations, evaluations and saves. Tokens/s and the ETA are of this time.
class TrainingClock {
 public:
  // `time`, of now_seconds(), must be later than the last OffTheClock.
  double at(double time) const { return time - off_; }

 private:
  friend class OffTheClock;
  double off_ = 0;  // seconds so far
};

// Stops the training clock for a scope. Scopes do not nest.
class OffTheClock {
 public:
  explicit OffTheClock(TrainingClock& clock) : clock_(clock) {}
  ~OffTheClock() { clock_.off_ += watch_.seconds(); }
  OffTheClock(const OffTheClock&) = delete;
  OffTheClock& operator=(const OffTheClock&) = delete;

  double seconds() const { return watch_.seconds(); }  // so far

 private:
  TrainingClock& clock_;
  Stopwatch watch_;
};

}  // namespace tokamak

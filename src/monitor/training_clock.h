// Training time: wall time without validations, evaluations and saves. Tokens/s and the ETA are of training alone.
#pragma once

#include "base/clock.h"

namespace tokamak {

class TrainingClock {
 public:
  // `time`, of now_seconds(), must be later than the last OffTheClock: read what steps came to before one begins.
  double at(double time) const { return time - off_; }

 private:
  friend class OffTheClock;
  double off_ = 0;  // seconds so far
};

// No training time passes from its construction to the end of its scope. Scopes do not nest.
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

// When a run saves: every checkpoint.interval after the last save that was tried, so a refused one is tried again an
// interval later.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/fields.h"
#include "checkpoint/run_state.h"
#include "comm/comm.h"

namespace tokamak {

class SaveClock {
 public:
  // In steps, tokens or seconds; 0 or none: no save is ever due.
  explicit SaveClock(const TrainingLength& interval);

  void restart(const RunState& state);  // a save was tried there, or the run starts there

  // Collective; the same on every rank.
  bool due(const RunState& state, Comm& comm) const;

 private:
  TrainingLength interval_;
  int64_t tokens_ = 0;  // at the last restart
  Stopwatch since_;
};

}  // namespace tokamak

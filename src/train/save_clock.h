// When a run saves: every checkpoint.interval after the last save that was tried, so a refused one is tried again an
// interval later. Also knows which state the newest checkpoint holds.
#pragma once

#include <optional>

#include "base/clock.h"
#include "base/fields.h"
#include "checkpoint/run_state.h"
#include "comm/comm.h"

namespace tokamak {

class SaveClock {
 public:
  // In steps, tokens or seconds; 0 or none: no save is ever due.
  explicit SaveClock(const TrainingLength& interval);

  void resumed(const RunState& state, bool from_own);  // from_own: from a checkpoint of this run
  void tried(const RunState& state);
  void committed(const RunState& state) { saved_ = state; }

  // Collective; the same on every rank.
  bool due(const RunState& state, Comm& comm) const;
  // Whether nothing would be lost without a save: a checkpoint holds this state, or no step is done.
  bool saved(const RunState& state) const { return state.step == 0 || saved_ == state; }

 private:
  TrainingLength interval_;
  std::optional<RunState> saved_;
  int64_t tokens_ = 0;  // at the last try, or the start
  Stopwatch since_;     // likewise
};

}  // namespace tokamak

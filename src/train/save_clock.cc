#include "train/save_clock.h"

#include <cmath>

#include "base/error.h"

namespace tokamak {

SaveClock::SaveClock(const TrainingLength& interval) : interval_(interval) {
  TOKAMAK_CHECK(interval.unit != TrainingLength::Unit::kFraction, "checkpoint.interval is no share of a run");
}

void SaveClock::restart(const RunState& state) {
  tokens_ = state.tokens;
  since_.restart();
}

bool SaveClock::due(const RunState& state, Comm& comm) const {
  if (!(interval_.value > 0)) return false;
  switch (interval_.unit) {
    case TrainingLength::Unit::kSeconds:
      return comm.max(since_.seconds() >= interval_.value) > 0;  // clocks differ: one due rank is enough
    case TrainingLength::Unit::kTokens:
      return static_cast<double>(state.tokens - tokens_) >= interval_.value;
    default:
      return state.step % std::llround(interval_.value) == 0;
  }
}

}  // namespace tokamak

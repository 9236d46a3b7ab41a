#include "monitor/startup_clock.h"

#include <cmath>

namespace tokamak {

void StartupClock::done(const std::string& phase) {
  const double now = now_seconds();
  phases_.push_back({"startup/" + phase, now - last_});
  last_ = now;
}

int64_t StartupClock::begin_time() const {
  return unix_milliseconds() - static_cast<int64_t>(std::llround(1e3 * (now_seconds() - begin_)));
}

std::vector<NamedValue> StartupClock::values() const {
  std::vector<NamedValue> values = phases_;
  values.push_back({"startup/seconds", last_ - begin_});
  return values;
}

}  // namespace tokamak

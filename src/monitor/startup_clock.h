// Where the time from a process's start to its first step goes: phases, one after the other, which add up to the whole.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "monitor/record.h"

namespace tokamak {

class StartupClock {
 public:
  StartupClock() : StartupClock(0) {}
  explicit StartupClock(double age) : begin_(now_seconds() - age), last_(begin_) {}  // of the process, in seconds

  void done(const std::string& phase);  // what ran since the last call, or since the start

  int64_t begin_time() const;              // milliseconds since 1970
  std::vector<NamedValue> values() const;  // "startup/PHASE" in seconds, in their order; then "startup/seconds"

 private:
  double begin_;
  double last_;  // end of the last phase
  std::vector<NamedValue> phases_;
};

}  // namespace tokamak

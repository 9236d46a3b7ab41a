// Log lines with the progress of a long task, and its end by a signal.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "train/stop_signal.h"

namespace tokamak::cli {

class ProgressLines {
 public:
  static constexpr double kSecondsBetweenLines = 5;

  void at(int64_t done, int64_t total, const std::string& more) {
    const double seconds = total_.seconds();
    if (since_.seconds() < kSecondsBetweenLines || done <= 0) return;
    since_.restart();
    const double share = double(done) / double(total);
    log::info(fixed(100 * share, 1), "% of ", human_bytes(total), more, ", ", human_bytes(double(done) / seconds),
              "/s, ", human_duration(seconds * (1 - share) / share), " to go");
  }
  double seconds() const { return total_.seconds(); }

 private:
  Stopwatch total_;
  Stopwatch since_;
};

// For commands whose output appears whole or not at all. Throws Error(kStopped) if a signal has come.
inline void expect_no_stop(const StopSignal& stop) {
  if (stop.received() == 0) return;
  fail(Kind::kStopped, str("stopped by signal ", stop.received(), "; the unfinished output was removed"));
}

}  // namespace tokamak::cli

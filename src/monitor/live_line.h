// Progress as the last line of a terminal: a bar, the rate of steps, the ETA. A thread of its own redraws it beneath
// the log (log::show_live_line) four times a second. The training thread stores one number a step and waits for no
// terminal.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include "base/service_thread.h"
#include "monitor/record.h"

namespace tokamak {

struct LiveProgress {
  int64_t step = 0, total_steps = 0;
  double seconds_per_step = 0;  // 0: not known yet
  double eta = 0;               // seconds
};

std::string live_text(const LiveProgress& progress);  // ASCII

class LiveLine {
 public:
  LiveLine(int64_t first_step, int64_t total_steps);  // when training begins after `first_step`
  ~LiveLine();                                        // removes the line
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  void step(int64_t step) { step_.store(step, std::memory_order_relaxed); }
  void interval(const MetricRecord& record);  // the values of an interval, with their ETA

 private:
  void redraw();

  std::atomic<int64_t> step_;
  std::mutex mutex_;
  LiveProgress report_;  // progress at the last interval; before the first one, at the start
  double reported_at_;
  std::optional<Timer> timer_;  // last: it uses the others
};

}  // namespace tokamak

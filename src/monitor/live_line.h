// Progress as the last line of a terminal: a bar, the rate of steps, the ETA; redrawn in place beneath the log
// (log::show_live_line) some times a second, by a thread of its own. The training thread stores a number a step, and
// waits for no terminal.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

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
  LiveLine(int64_t first_step, int64_t total_steps);  // training begins, `first_step` being done
  ~LiveLine();                                        // removes the line
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  void step(int64_t step) { step_.store(step, std::memory_order_relaxed); }
  void interval(const MetricRecord& record);  // an interval's values, with their ETA

 private:
  struct Report {
    int64_t step = 0;
    double seconds_per_step = 0, eta = 0;
    double time = 0;  // when it came
  };

  void redraw_until_end();
  LiveProgress progress(const std::optional<Report>& report) const;

  const int64_t first_step_, total_steps_;
  const double begin_;
  std::atomic<int64_t> step_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<Report> report_;
  bool is_over_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace tokamak

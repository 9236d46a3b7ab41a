// Records as lines of the log. An event has no line here: its cause logs it. On a terminal a line beneath them shows
// progress while the run trains (live_line.h).
#pragma once

#include <optional>

#include "monitor/live_line.h"
#include "monitor/sink.h"

namespace tokamak {

class Console : public Sink {
 public:
  explicit Console(int64_t total_steps) : total_steps_(total_steps) {}
  void write(const MetricRecord& record) override;
  void step(int64_t step) override;

 private:
  int64_t total_steps_;
  std::optional<LiveLine> live_;  // from the event "ready" to "end"
};

}  // namespace tokamak

// Records as lines of the log, for those who watch a run. An event has none: whoever causes one logs it. On a terminal a
// line beneath them shows progress while the run trains (live_line.h).
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
  void update_live_line(const MetricRecord& record);

  int64_t total_steps_;
  std::optional<LiveLine> live_;
};

}  // namespace tokamak

// Records as lines of the log, for those who watch a run. An event has none: whoever causes one logs it.
#pragma once

#include "monitor/sink.h"

namespace tokamak {

class Console : public Sink {
 public:
  explicit Console(int64_t total_steps) : total_steps_(total_steps) {}
  void write(const MetricRecord& record) override;

 private:
  int64_t total_steps_;
};

}  // namespace tokamak

// Takes the records of a run, from its first word to its last, and hands each with its time to every sink. Only the rank
// that reports has sinks; on the others nothing is written.
#pragma once

#include <string>
#include <vector>

#include "monitor/sink.h"

namespace tokamak {

class Recorder {
 public:
  explicit Recorder(Sinks sinks) : sinks_(std::move(sinks)) {}

  bool reports() const { return !sinks_.empty(); }
  void write(MetricRecord record);
  void step(int64_t step);  // for those who show progress; no record
  void event(int64_t step, RunEvent event, std::vector<NamedValue> values = {});
  // What was written is in its files on return, unless a disk takes longer than some seconds. Before what must not be
  // newer than the records: a checkpoint, the end of the process.
  void flush();

 private:
  Sinks sinks_;
};

}  // namespace tokamak

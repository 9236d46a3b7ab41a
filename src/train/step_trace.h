// The steps of metrics.trace in the Chrome format, for Perfetto (ui.perfetto.dev) and chrome://tracing. Each rank has a
// row of its steps, one of the host's calls, and one for each stream's work. Nothing waits for the device inside a
// traced step; these steps run without CUDA graphs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/timeline.h"
#include "comm/comm.h"
#include "monitor/chrome_trace.h"

namespace tokamak {

class StepTrace {
 public:
  // The file has the first ranks of the run, at most so many: those of a node.
  static constexpr int kMostRanks = 8;

  // `path` is rank 0's to write. end() is collective.
  StepTrace(TracedSteps steps, Comm& comm, Device& device, std::string path);
  ~StepTrace();

  void begin(int64_t step);  // before the step is enqueued
  void end(int64_t step);    // after it; waits for the device and writes the file when it was the last
  void forget();             // the steps so far

 private:
  struct Span {
    int64_t step;
    double begin, end;  // now_seconds(), of the host
  };
  void write();

  TracedSteps steps_;
  Comm& comm_;
  Device& device_;
  std::string path_;
  std::optional<Timeline> timeline_;
  std::optional<Observation> watched_;
  std::vector<Span> spans_;
};

// How long each stream was busy, of the time from its first call to its last: "compute 97.1% of 3.21 s, gather 12.0%".
std::string busy_text(const std::vector<Timeline::Entry>& entries);

}  // namespace tokamak

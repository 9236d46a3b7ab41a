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
  // The file has at most this many ranks, the first of the run: as many as a node usually has.
  static constexpr int kMostRanks = 8;

  // Rank 0 writes the file at `path`. end() is collective.
  StepTrace(TracedSteps steps, Comm& comm, Device& device, std::string path);
  ~StepTrace();

  void begin(int64_t step);  // before the step is enqueued
  void end(int64_t step);    // after it is enqueued; after the last step, waits for the device and writes the file
  void forget();             // drops the steps traced so far

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

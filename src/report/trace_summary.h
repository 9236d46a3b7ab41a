// What a traced step spent its time on: the spans of a trace-*.json (src/train/step_trace.h), added up by operation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tokamak {

// All calls of one name on one stream, over all traced steps of rank 0.
struct TracedOperation {
  std::string name;
  std::string stream;
  int64_t calls = 0;
  double seconds = 0;
  double flops = 0;
  double bytes = 0;      // of memory that the calls read and write
  double exchanged = 0;  // bytes that went to other ranks
};

struct TraceSummary {
  std::string file;                         // "trace-10-12.json"
  int64_t steps = 0;                        // that were traced
  double seconds = 0;                       // from the first call's begin to the last one's end
  std::vector<TracedOperation> operations;  // the longest first
};

// Of each trace in a run's directory, by name. Lines that are no event, or one with values of other types than the writer's,
// are skipped; a file without an event gives nothing. Error(kData) where a trace is no regular file.
std::vector<TraceSummary> read_traces(const std::string& directory);

}  // namespace tokamak

// The records of a run that count, out of those of all its starts. A run that goes back to an older checkpoint trains
// steps again: the later records of these steps count.
#pragma once

#include <string>
#include <vector>

#include "monitor/record.h"

namespace tokamak {

// Whether the run is at the step of `record`: it has values, or a start begins there. Earlier records of later steps no
// longer count.
bool sets_course(const MetricRecord& record);

class History {
 public:
  void see(MetricRecord record);  // in the order of the file

  // Records of values by ascending step. No two of one step have a value in common.
  const std::vector<MetricRecord>& records() const { return records_; }

 private:
  std::vector<MetricRecord> records_;
};

// Reads a metrics.jsonl; empty if there is none.
std::vector<MetricRecord> read_history(const std::string& path);

}  // namespace tokamak

// The course of a run as it stands, out of the records of all its starts. A run that goes back to an older checkpoint
// trains steps again: of those the later records are the truth.
#pragma once

#include <string>
#include <vector>

#include "monitor/record.h"

namespace tokamak {

// Whether the run's course stands at the step of `record`: values are reported there, or a start begins there. What was
// reported of later steps is of a course that the run has left, whether it has come so far again or not.
bool sets_course(const MetricRecord& record);

class History {
 public:
  void see(MetricRecord record);  // in the order of the file

  // Records of values, their steps ascending. No two of one step have a value in common.
  const std::vector<MetricRecord>& records() const { return records_; }

 private:
  std::vector<MetricRecord> records_;
};

// Of a metrics.jsonl; nothing where there is none.
std::vector<MetricRecord> read_history(const std::string& path);

}  // namespace tokamak

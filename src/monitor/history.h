// The valid records of a run, out of those of all its starts. A run that goes back to an older checkpoint trains steps
// again. The later records of these steps are valid, the earlier ones are not.
#pragma once

#include <string>
#include <vector>

#include "monitor/record.h"

namespace tokamak {

// Whether `record` is the event "resume" or "ready" of a start, or "rollback". The run goes on from its step.
bool goes_back(const MetricRecord& record);
// Whether earlier records of later steps are no longer valid: `record` has values, or goes_back().
bool sets_course(const MetricRecord& record);

// Adds the next record of the file and removes those that it makes invalid. `history`: records of values by ascending
// step; no two of one step have a value in common.
void add_to_history(std::vector<MetricRecord>& history, MetricRecord record);

// Reads a metrics.jsonl; empty if there is none.
std::vector<MetricRecord> read_history(const std::string& path);

}  // namespace tokamak

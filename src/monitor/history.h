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

// Adds the next record of the file, in place of those that no longer count. `history`: records of values by ascending
// step; no two of one step have a value in common.
void add_to_history(std::vector<MetricRecord>& history, MetricRecord record);

// Reads a metrics.jsonl; empty if there is none.
std::vector<MetricRecord> read_history(const std::string& path);

}  // namespace tokamak

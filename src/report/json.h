// A report as one JSON object, for scripts; several as a list of them. Times are UTC, durations seconds with three decimals; "seconds" adds up to
// "wall_clock" to the millisecond, of the run and of each start.
#pragma once

#include <string>
#include <vector>

#include "report/run_report.h"

namespace tokamak {

std::string json_of(const RunReport& report);
std::string json_of(const std::vector<RunReport>& reports);  // of one: the object itself

}  // namespace tokamak

// Reports as JSON for scripts. Times are UTC, durations seconds with three decimals. "seconds" adds up to
// "wall_clock" to the millisecond, for the run and for each start.
#pragma once

#include <string>
#include <vector>

#include "report/run_report.h"

namespace tokamak {

std::string json_of(const RunReport& report);
std::string json_of(const std::vector<RunReport>& reports);  // one: its object; several: a list

}  // namespace tokamak

// A report as one JSON object, for scripts. Times are UTC, durations seconds with three decimals; "seconds" adds up to
// "wall_clock" to the millisecond, of the run and of each start.
#pragma once

#include <string>

#include "report/run_report.h"

namespace tokamak {

std::string json_of(const RunReport& report);

}  // namespace tokamak

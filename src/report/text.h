// A report for a terminal: where the time went, then a line per start.
#pragma once

#include <string>

#include "report/run_report.h"

namespace tokamak {

std::string text_of(const RunReport& report);

}  // namespace tokamak

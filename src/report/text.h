// A report for a terminal: where the time went, then a line per start. What the run's files say is cut and shown printable.
#pragma once

#include <string>
#include <vector>

#include "report/run_report.h"

namespace tokamak {

std::string text_of(const RunReport& report);
std::string steps_text(int64_t step, int64_t total);         // "step 60 of 100"; `total` of 0 is not known
std::string text_of(const std::vector<RunReport>& reports);  // of several: a line for each, then one after another

}  // namespace tokamak

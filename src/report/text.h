// A report for a terminal: where the time went, then a line per start. Texts of the run's files are cut and made
// printable.
#pragma once

#include <string>
#include <vector>

#include "report/run_report.h"

namespace tokamak {

std::string text_of(const RunReport& report);
std::string steps_text(int64_t step, int64_t total);         // "step 60 of 100"; total 0: not known
std::string text_of(const std::vector<RunReport>& reports);  // several: a line each, then each report

}  // namespace tokamak

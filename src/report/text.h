// Reports for a terminal: where the time went, then a line per start. Texts of the run's files are cut and made
// printable. And reports as JSON for scripts.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "report/run_report.h"

namespace tokamak {

std::string text_of(const RunReport& report);
std::string text_of(const std::vector<RunReport>& reports);  // several: a line each, then each report
std::string steps_text(int64_t step, int64_t total);         // "step 60 of 100"; total 0: not known

nlohmann::ordered_json json_of(const RunReport& report);
std::string json_text(const std::vector<RunReport>& reports);  // one: its object; several: a list

}  // namespace tokamak

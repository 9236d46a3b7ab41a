// Prints the results of `tokamak doctor`: a row per check as it ends, with its notes, or all as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>

#include "doctor/doctor.h"

namespace tokamak::cli {

void print(std::ostream& out, const doctor::CheckResult& check);
void print_end(std::ostream& out, const doctor::DoctorReport& report);
nlohmann::ordered_json as_json(const doctor::DoctorReport& report, const std::string& version);

}  // namespace tokamak::cli

// What `tokamak doctor` prints: a row a check as it ends, what it found below it, or all of it as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>

#include "doctor/doctor.h"

namespace tokamak::cli {

void print(std::ostream& out, const doctor::CheckResult& check);
void print_end(std::ostream& out, const doctor::DoctorReport& report);
nlohmann::ordered_json as_json(const doctor::DoctorReport& report, const std::string& version);

}  // namespace tokamak::cli

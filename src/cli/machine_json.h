// A machine as the file that plan/hardware.h reads (read_machine).
#pragma once

#include <nlohmann/json.hpp>

#include "plan/hardware.h"

namespace tokamak::cli {

nlohmann::ordered_json machine_json(const Machine& machine);

}  // namespace tokamak::cli

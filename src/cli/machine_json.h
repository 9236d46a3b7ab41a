// A machine as the JSON that read_machine (plan/hardware.h) reads.
#pragma once

#include <nlohmann/json.hpp>

#include "plan/hardware.h"

namespace tokamak::cli {

nlohmann::ordered_json machine_json(const Machine& machine);

}  // namespace tokamak::cli

// A device that owns only addresses, and operations that compute nothing. A real step runs on them and is recorded, on
// any machine and at any size (plan/step_record.h). Shapes, overlaps and the order of calls are checked as always.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"

namespace tokamak {

// Properties of the device that a plan is for.
struct PlannedDevice {
  std::string description;
  bool uses_host_memory = true;
  int64_t startup_bytes = 0;
  int64_t reserve_bytes = 0;
};

// `sizes` says what the operations need: bytes of workspace, rows of a chunk of logits.
Backend make_plan_backend(const PlannedDevice& device, std::unique_ptr<Ops> sizes);

}  // namespace tokamak

// A run that is ready to train: groups made, auto keys settled, memory planned. plan/prepare_run.h makes it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "comm/mesh.h"
#include "train/auto_choice.h"
#include "train/memory_check.h"
#include "train/run_plan.h"

namespace tokamak {

struct SettledRun {
  RunConfig config;                  // without auto keys that need a prediction (auto_choice.h)
  std::optional<AutoChoice> choice;  // the values of these keys
  std::string why;                   // reasons for the choice, for the log; on rank 0
  std::unique_ptr<Comm> data_comm;   // carries tensors
  std::unique_ptr<MeshGroups> mesh;  // its groups
  MemoryShare memory;
};

struct PreparedRun : SettledRun {
  int64_t program_bytes = 0;  // of the device, in use before the plan's memory is allocated
  PlannedRun planned;         // fits into `memory`

  // The device's memory in use once the plan is committed.
  int64_t planned_device_bytes() const {
    return program_bytes + planned_bytes(planned.engine->plan(), *planned.engine->backend().device);
  }
};

}  // namespace tokamak

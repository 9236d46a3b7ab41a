// Memory and limits of each host, and whether the run of a config fits into them. train and bench make the same plan
// (train/run_plan.h).
#pragma once

#include "backend/backend.h"
#include "comm/world.h"
#include "doctor/check.h"
#include "train/run_config.h"

namespace tokamak::doctor {

struct MemoryCheck {
  Backend* backend = nullptr;
  Comm* data = nullptr;  // the data group; without it or the config nothing is planned
  const RunConfig* config = nullptr;
};
CheckResult check_memory(World& world, const RankHosts& peers, const MemoryCheck& check);  // collective

}  // namespace tokamak::doctor

// Memory and limits of each host, and whether the run that a config describes fits. The plan is the one that train and
// bench make (train/run_plan.h), for the ranks and devices that are here.
#pragma once

#include "backend/backend.h"
#include "comm/world.h"
#include "doctor/check.h"
#include "train/run_config.h"

namespace tokamak::doctor {

// What the host and the limits of this process allow.
Facts memory_facts(const Device& device);

// `config` and `data` may be missing: then there is no plan to compare with. Collective; `data` is the data group.
struct MemoryCheck {
  Backend* backend = nullptr;
  Comm* data = nullptr;
  const RunConfig* config = nullptr;
};
CheckResult check_memory(World& world, const RankHosts& peers, const MemoryCheck& check);

// The warnings and errors that follow from the facts of all ranks.
void judge_memory(CheckResult& result, const RankHosts& peers);

}  // namespace tokamak::doctor

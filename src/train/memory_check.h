// Whether a plan fits this machine, and what to change if it does not.
#pragma once

#include <cstdint>

#include "backend/device.h"
#include "tensor/arena.h"
#include "train/run_config.h"

namespace tokamak {

// Memory that this rank may plan with: what the device has left, shared among the ranks of the node.
int64_t memory_share(const Device& device, int local_size);

// Error(kDevice) naming the numbers and the keys that would help.
void expect_fit(const MemoryPlan& plan, int64_t available, int local_size, const RunConfig& config,
                int64_t micro_batch);

}  // namespace tokamak

// Whether a plan fits this machine, and what to change if it does not.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "dist/comm.h"
#include "tensor/arena.h"
#include "train/batch_shape.h"
#include "train/run_config.h"

namespace tokamak {

// Memory that this rank may plan with: what the device has left, shared among the ranks of the node.
int64_t memory_share(const Device& device, int local_size);

// The micro-batch of training.micro_batch_size: auto. Of the ways to cut a rank's share of the batch into equal pieces,
// the coarsest that stays below 8192 tokens and whose plan fits into `available` bytes; at least 1.
int64_t choose_micro_batch(const RunConfig& config, Comm& comm, Backend& backend, const BatchShape& shape,
                           int64_t available);

// Error(kDevice) naming the numbers and the keys that would help.
void expect_fit(const MemoryPlan& plan, int64_t available, int local_size, const RunConfig& config,
                int64_t micro_batch);

}  // namespace tokamak

// The seam between the run's state in memory and a checkpoint's named slices.
#pragma once

#include <vector>

#include "checkpoint/shard_file.h"
#include "train/assembly.h"

namespace tokamak {

// Which slice of every unit this rank holds.
ShardPlace shard_place(const Comm& comm);

// This rank's slices of master weights and moments, unit by unit. In training; of the masters alone otherwise.
std::vector<UnitSlices> state_slices(Assembly& assembly);

}  // namespace tokamak

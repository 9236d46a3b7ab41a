// The global gradient norm and what follows from it, on the device: one all-reduce of scalars, no word to the host.
#pragma once

#include "zero/sharded_parameters.h"

namespace tokamak {

// Adds this shard's squared gradients to `sums`, sums `sums` over all ranks, and decides scale and permission of the
// step (ops.h, ControlStep). `sums` (kStepSums) f64 holds this rank's losses and counts; `control` (kStepControls) f32.
void reduce_and_clip(ShardedParameters& parameters, Stream& stream, Tensor sums, Tensor control, double max_norm);

}  // namespace tokamak

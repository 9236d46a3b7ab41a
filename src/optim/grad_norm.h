// The global gradient norm, clipping and the decision to skip a step, all on the device: one all-reduce of scalars and
// no host synchronisation.
#pragma once

#include "zero/sharded_parameters.h"

namespace tokamak {

enum class NonFiniteGradients { kKept, kZeroed };

struct ClipOptions {
  double max_norm = 0;  // 0: no clipping
  StepLimits limits = {};
  NonFiniteGradients non_finite = NonFiniteGradients::kKept;
};

// Adds this rank's share of the squared gradients to `sums`, all-reduces `sums`, and decides the gradient scale and
// whether the step applies (ops.h, ControlStep). `sums` (kStepSums) f64 holds this rank's losses and counts; `control`
// (kStepControls) f32.
void reduce_and_clip(ShardedParameters& parameters, Stream& stream, Tensor sums, Tensor control,
                     const ClipOptions& options);

}  // namespace tokamak

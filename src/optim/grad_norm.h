// The global gradient norm, clipping and the decision to skip a step, all on the device: one all-reduce of scalars and
// no host synchronisation.
#pragma once

#include "zero/sharded_parameters.h"

namespace tokamak {

enum class NonFiniteGradients { kKept, kZeroed };

struct ClipOptions {
  double max_norm = 0;       // 0: no clipping
  double max_unit_norm = 0;  // of each ParamTable::clip_unit, before that; 0: no clipping
  Tensor unit_sums = {};     // (clip units, kStepSums) f64: memory for it
  StepLimits limits = {};
  NonFiniteGradients non_finite = NonFiniteGradients::kKept;
};

// Adds this rank's share of the squared gradients to `sums`, all-reduces `sums`, and decides the gradient scale and
// whether the step applies (ops.h, ControlStep). `sums` (kStepSums) f64 holds this rank's losses and counts; `control`
// (kStepControls) f32. With max_unit_norm the gradients are scaled in place first. The norm is that of what is left.
void reduce_and_clip(ShardedParameters& parameters, Stream& stream, Tensor sums, Tensor control,
                     const ClipOptions& options);

}  // namespace tokamak

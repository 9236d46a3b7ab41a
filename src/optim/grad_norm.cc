#include "optim/grad_norm.h"

namespace tokamak {

void reduce_and_clip(ShardedParameters& parameters, Stream& stream, Tensor sums, Tensor control,
                     const ClipOptions& options) {
  Ops& ops = *parameters.backend().ops;
  if (options.non_finite == NonFiniteGradients::kZeroed) ops.zero_non_finite(stream, {.x = parameters.gradients()});
  // Replicas have the same gradients: so that the sum over all data ranks has each element once.
  ops.sum_squares(stream, {.x = parameters.distinct(parameters.gradients()), .sums = sums});
  parameters.mesh().data().all_reduce(stream, sums);
  ops.control_step(
      stream,
      {.sums = sums, .control = control, .max_norm = static_cast<float>(options.max_norm), .limits = options.limits});
}

}  // namespace tokamak

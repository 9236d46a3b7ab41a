#include "optim/grad_norm.h"

namespace tokamak {

void reduce_and_clip(ShardedParameters& parameters, Stream& stream, Tensor sums, Tensor control, double max_norm) {
  Ops& ops = *parameters.backend().ops;
  // Replicas have the same gradients: so that the sum over all data ranks has each element once.
  ops.sum_squares(stream, {.x = parameters.distinct(parameters.gradients()), .sums = sums});
  parameters.mesh().data().all_reduce(stream, sums);
  ops.control_step(stream, {.sums = sums, .control = control, .max_norm = static_cast<float>(max_norm)});
}

}  // namespace tokamak

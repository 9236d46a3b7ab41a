#include "optim/grad_norm.h"

namespace tokamak {

void reduce_and_clip(ShardedParameters& parameters, Stream& stream, Tensor sums, Tensor control, double max_norm) {
  Ops& ops = *parameters.backend().ops;
  const Mesh& mesh = parameters.mesh();
  // Replicas have the same gradients: each counts a part of them, so that the sum over the data ranks has them once.
  const int64_t part = parameters.shard_elements() / mesh.replicas(), begin = part * mesh.replica();
  ops.sum_squares(stream, {.x = parameters.gradients().flat(begin, begin + part), .sums = sums});
  mesh.data().all_reduce(stream, sums);
  ops.control_step(stream, {.sums = sums, .control = control, .max_norm = static_cast<float>(max_norm)});
}

}  // namespace tokamak

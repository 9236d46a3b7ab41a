#include "optim/grad_norm.h"

namespace tokamak {

namespace {

// Clips each unit of the model by itself. `sums` become global, without squared gradients.
void clip_units(ShardedParameters& parameters, Stream& stream, Tensor sums, const ClipOptions& options) {
  Ops& ops = *parameters.backend().ops;
  const ParamTable& table = parameters.table();
  const auto of = [&](int64_t unit) {
    const int64_t begin = parameters.slice_begin(unit);
    return parameters.gradients().flat(begin, begin + parameters.slice_elements(unit));
  };
  const auto sums_of = [&](int64_t unit) {
    const int64_t row = table.clip_unit(unit) * kStepSums;
    return options.unit_sums.flat(row, row + kStepSums);
  };
  ops.fill(stream, {.x = options.unit_sums, .value = 0});
  for (int64_t u = 0; u < std::ssize(table.units); ++u) {
    ops.sum_squares(stream, {.x = parameters.distinct(of(u)), .sums = sums_of(u)});
  }
  parameters.mesh().data().all_reduce(stream, options.unit_sums);
  parameters.mesh().data().all_reduce(stream, sums);
  for (int64_t u = 0; u < std::ssize(table.units); ++u) {
    ops.clip_unit(
        stream,
        {.x = of(u), .unit_sums = sums_of(u), .sums = sums, .max_norm = static_cast<float>(options.max_unit_norm)});
  }
}

}  // namespace

void reduce_and_clip(ShardedParameters& parameters, Stream& stream, Tensor sums, Tensor control,
                     const ClipOptions& options) {
  Ops& ops = *parameters.backend().ops;
  if (options.non_finite == NonFiniteGradients::kZeroed) ops.zero_non_finite(stream, {.x = parameters.gradients()});
  const bool by_units = options.max_unit_norm > 0;
  if (by_units) {
    clip_units(parameters, stream, sums, options);
  } else {
    // Replicas have the same gradients: so that the sum over all data ranks has each element once.
    ops.sum_squares(stream, {.x = parameters.distinct(parameters.gradients()), .sums = sums});
    parameters.mesh().data().all_reduce(stream, sums);
  }
  ops.control_step(stream, {.sums = sums,
                            .control = control,
                            .max_norm = static_cast<float>(options.max_norm),
                            .limits = options.limits,
                            .unit_sums = by_units ? options.unit_sums : Tensor(),
                            .max_unit_norm = static_cast<float>(options.max_unit_norm)});
}

}  // namespace tokamak

#include "zero/shard_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "tensor/unit_layout.h"

namespace tokamak {

ShardStatistics::ShardStatistics(ShardedParameters& parameters, MemoryPlan& plan) : parameters_(parameters) {
  const Mesh& mesh = parameters.mesh();
  for (int64_t u = 0; const Unit& unit : parameters.table().units) {
    const int64_t slice = parameters.slice_elements(u), slice_begin = parameters.slice_begin(u);
    ++u;
    for (const FlatParam& flat : flat_params(unit)) {
      const auto weight = std::ssize(weights_);
      weights_.push_back({flat.param->name, flat.end - flat.begin, pieces_, pieces_});
      for (int64_t at = flat.begin; at < flat.end; ++pieces_) {
        const int64_t rank = at / slice, end = std::min(flat.end, (rank + 1) * slice);
        // Replicas have the same slices, and divide the pieces among them.
        if (rank == mesh.shard().rank() && pieces_ % mesh.replicas() == mesh.replica()) {
          const int64_t to_shard = slice_begin - rank * slice;
          own_.push_back({pieces_, weight, at + to_shard, end + to_shard});
        }
        at = end;
      }
      weights_.back().last = pieces_;
    }
  }
  const Shape shape = {kMeasured * values_each()};
  values_slot_ = plan.add("tensor statistics/values", DType::kF64, shape);
  on_host_slot_ = plan.add("tensor statistics/on the host", DType::kF64, shape, MemoryKind::kPinned);
}

void ShardStatistics::commit(const Arena& arena) {
  Device& device = *parameters_.backend().device;
  values_ = arena[values_slot_];
  on_host_ = arena[on_host_slot_];
  arrived_ = device.make_event();
  for (auto* time : {&begin_, &paused_, &resumed_, &end_}) *time = device.make_timestamp();
}

int64_t ShardStatistics::values_each() const { return pieces_ * kStatistics + std::ssize(weights_) * kMagnitudeBins; }

void ShardStatistics::measure(Measured what, Tensor shard, Stream& compute, Tensor divisor) {
  const int64_t begin = static_cast<int64_t>(what) * values_each(), magnitudes = begin + pieces_ * kStatistics;
  for (const Piece& piece : own_) {
    const int64_t out = begin + piece.number * kStatistics, counts = magnitudes + piece.weight * kMagnitudeBins;
    parameters_.backend().ops->statistics(compute, {.x = shard.flat(piece.begin, piece.end),
                                                    .out = values_.flat(out, out + kStatistics),
                                                    .magnitudes = values_.flat(counts, counts + kMagnitudeBins),
                                                    .divisor = divisor});
  }
}

void ShardStatistics::see_gradients(Stream& compute, Tensor tokens) {
  TOKAMAK_CHECK(!waiting_, "the last statistics were not taken");
  begin_->record(compute);
  parameters_.backend().ops->fill(compute, {.x = values_, .value = 0});
  measure(Measured::kGradients, parameters_.gradients(), compute, tokens);
  paused_->record(compute);
}

void ShardStatistics::see_update(Stream& compute) {
  resumed_->record(compute);
  measure(Measured::kWeights, parameters_.master(), compute, {});
  measure(Measured::kUpdates, parameters_.gradients(), compute, {});
  parameters_.mesh().data().all_reduce(compute, values_);
  parameters_.backend().device->copy_to_host(compute, values_, on_host_.data());
  end_->record(compute);
  compute.record(*arrived_);
  waiting_ = true;
}

ShardStatistics::Result ShardStatistics::take() {
  TOKAMAK_CHECK(waiting_, "no statistics wait to be taken");
  waiting_ = false;
  arrived_->synchronize();
  const auto* values = on_host_.as<double>();
  Result result;
  result.seconds =
      paused_->seconds_since(*begin_).value_or(std::nan("")) + end_->seconds_since(*resumed_).value_or(std::nan(""));
  for (int64_t w = 0; const Weight& weight : weights_) {
    WeightStatistics& of = result.weights.emplace_back(WeightStatistics{weight.name, weight.elements, {}});
    for (int what = 0; what < kMeasured; ++what) {
      const double* pieces = values + what * values_each();
      const double* magnitudes = pieces + pieces_ * kStatistics + w * kMagnitudeBins;
      TensorSums& sums = of.sums[what];
      sums.min = std::numeric_limits<double>::infinity();
      sums.max = -sums.min;
      for (int64_t p = weight.first; p < weight.last; ++p) {
        const double* piece = pieces + p * kStatistics;
        sums.min = std::min(sums.min, piece[kMin]);
        sums.max = std::max(sums.max, piece[kMax]);
        sums.squares += piece[kSquares];
        sums.non_finite += std::llround(piece[kNonFinite]);
      }
      std::transform(magnitudes, magnitudes + kMagnitudeBins, sums.magnitudes.begin(),
                     [](double count) { return std::llround(count); });
    }
    ++w;
  }
  return result;
}

}  // namespace tokamak

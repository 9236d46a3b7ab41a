#include "zero/shard_statistics.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "tensor/unit_layout.h"

namespace tokamak {

ShardStatistics::ShardStatistics(ShardedParameters& parameters, const std::vector<StateTensor>& state, MemoryPlan& plan)
    : parameters_(parameters), state_(state) {
  const Mesh& mesh = parameters.mesh();
  for (int64_t u = 0; const Unit& unit : parameters.table().units) {
    const int64_t slice = parameters.slice_elements(u);
    int64_t in_unit = 0;
    for (const FlatParam& flat : flat_params(unit)) {
      const auto weight = std::ssize(weights_);
      weights_.push_back({flat.param->name, flat.end - flat.begin, pieces_, pieces_, u, in_unit++});
      for (int64_t at = flat.begin; at < flat.end; ++pieces_) {
        const int64_t rank = at / slice, end = std::min(flat.end, (rank + 1) * slice);
        // Replicas have the same slices, and divide the pieces among them.
        if (rank == mesh.shard().rank() && pieces_ % mesh.replicas() == mesh.replica()) {
          own_.push_back({pieces_, weight, u, at - rank * slice, end - rank * slice});
        }
        at = end;
      }
      weights_.back().last = pieces_;
    }
    ++u;
  }
  const Shape shape = {rows() * values_each()};
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

bool ShardStatistics::has(const StateTensor& state, const Weight& weight) const {
  const StateUnit& unit = state.units.at(static_cast<size_t>(weight.unit));
  return unit.is_held() && unit.weights.at(static_cast<size_t>(weight.in_unit));
}

void ShardStatistics::measure(Measured what, Tensor shard, Stream& compute, Tensor divisor) {
  for (const Piece& piece : own_) {
    const int64_t begin = parameters_.slice_begin(piece.unit);
    measure(static_cast<int64_t>(what), piece, shard.flat(begin + piece.begin, begin + piece.end), compute, divisor);
  }
}

void ShardStatistics::measure(int64_t row, const Piece& piece, Tensor values, Stream& compute, Tensor divisor) {
  const int64_t begin = row * values_each(), out = begin + piece.number * kStatistics;
  const int64_t counts = begin + pieces_ * kStatistics + piece.weight * kMagnitudeBins;
  parameters_.backend().ops->statistics(compute, {.x = values,
                                                  .out = values_.flat(out, out + kStatistics),
                                                  .magnitudes = values_.flat(counts, counts + kMagnitudeBins),
                                                  .divisor = divisor});
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
  measure(Measured::kWeights, parameters_.master(), compute);
  measure(Measured::kUpdates, parameters_.gradients(), compute);
  for (int64_t row = kMeasured; const StateTensor& state : state_) {
    for (const Piece& piece : own_) {
      if (!has(state, weights_[static_cast<size_t>(piece.weight)])) continue;
      const int64_t begin = state.units[static_cast<size_t>(piece.unit)].begin;
      measure(row, piece, state.tensor.flat(begin + piece.begin, begin + piece.end), compute, {});
    }
    ++row;
  }
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
  Result result;
  result.seconds =
      paused_->seconds_since(*begin_).value_or(std::nan("")) + end_->seconds_since(*resumed_).value_or(std::nan(""));
  for (size_t w = 0; w < weights_.size(); ++w) {
    const Weight& weight = weights_[w];
    WeightStatistics& of = result.weights.emplace_back(WeightStatistics{weight.name, weight.elements, {}, {}});
    for (int64_t row = 0; row < kMeasured; ++row) of.sums[static_cast<size_t>(row)] = sums_of(row, w);
    for (int64_t row = kMeasured; const StateTensor& state : state_) {
      if (has(state, weight)) of.state.emplace_back(state.name, sums_of(row, w));
      ++row;
    }
  }
  return result;
}

TensorSums ShardStatistics::sums_of(int64_t row, size_t weight) const {
  const double* const pieces = on_host_.as<double>() + row * values_each();
  const double* const magnitudes = pieces + pieces_ * kStatistics + static_cast<int64_t>(weight) * kMagnitudeBins;
  TensorSums sums;
  for (int64_t p = weights_[weight].first; p < weights_[weight].last; ++p) sums.add(pieces + p * kStatistics);
  sums.add_magnitudes(magnitudes);
  return sums;
}

}  // namespace tokamak

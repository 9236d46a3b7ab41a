#include "model/activation_statistics.h"

#include <cmath>

#include "base/error.h"
#include "model/activation_names.h"

namespace tokamak {

ActivationStatistics::ActivationStatistics(Options options, Comm& ranks, Backend& backend, MemoryPlan& plan)
    : options_(std::move(options)), ranks_(ranks), backend_(backend) {
  for (int64_t row = 0; const std::string& name : options_.names) row_of_[name] = row++;
  const Shape shape = {ranks.size() * rows() * kStatistics + rows() * kMagnitudeBins};
  values_slot_ = plan.add("activation statistics/values", DType::kF64, shape);
  on_host_slot_ = plan.add("activation statistics/on the host", DType::kF64, shape, MemoryKind::kPinned);
  if (row_of_.count(activation::kLogits) == 0) return;
  logits_slot_ = plan.add("activation statistics/logits", DType::kF32, Shape{kLogitRows, options_.vocab});
}

void ActivationStatistics::commit(const Arena& arena) {
  values_ = arena[values_slot_];
  on_host_ = arena[on_host_slot_];
  if (logits_slot_) logits_ = arena[*logits_slot_];
  arrived_ = backend_.device->make_event();
  begin_ = backend_.device->make_timestamp();
  end_ = backend_.device->make_timestamp();
}

void ActivationStatistics::begin(Stream& compute) { backend_.ops->fill(compute, {.x = values_, .value = 0}); }

void ActivationStatistics::see(Stream& compute, const std::string& name, Tensor values) {
  const auto found = row_of_.find(name);
  if (found == row_of_.end()) return;
  const int64_t out = (ranks_.rank() * rows() + found->second) * kStatistics;
  const int64_t counts = ranks_.size() * rows() * kStatistics + found->second * kMagnitudeBins;
  backend_.ops->statistics(compute, {.x = values.flat(),
                                     .out = values_.flat(out, out + kStatistics),
                                     .magnitudes = values_.flat(counts, counts + kMagnitudeBins)});
}

Tensor ActivationStatistics::logits(int64_t rows) const { return logits_ ? logits_.rows(0, rows) : Tensor(); }

void ActivationStatistics::finish(Stream& compute) {
  TOKAMAK_CHECK(!waiting_, "the last statistics were not taken");
  begin_->record(compute);
  ranks_.all_reduce(compute, values_);
  backend_.device->copy_to_host(compute, values_, on_host_.data());
  end_->record(compute);
  compute.record(*arrived_);
  waiting_ = true;
}

ActivationStatistics::Result ActivationStatistics::take() {
  TOKAMAK_CHECK(waiting_, "no statistics wait to be taken");
  waiting_ = false;
  arrived_->synchronize();
  Result result{.activations = {}, .seconds = end_->seconds_since(*begin_).value_or(std::nan(""))};
  const auto* const values = on_host_.as<double>();
  for (int64_t row = 0; row < rows(); ++row) {
    TensorSums sums;
    for (int64_t rank = 0; rank < ranks_.size(); ++rank) sums.add(values + (rank * rows() + row) * kStatistics);
    sums.add_magnitudes(values + ranks_.size() * rows() * kStatistics + row * kMagnitudeBins);
    result.activations.push_back({options_.names[static_cast<size_t>(row)], sums});
  }
  return result;
}

}  // namespace tokamak

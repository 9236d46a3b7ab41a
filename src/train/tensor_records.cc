#include "train/tensor_records.h"

#include <algorithm>
#include <cmath>

namespace tokamak {

namespace {

TensorSummary summary_of(const TensorSums& sums, int64_t elements) {
  const auto finite = static_cast<double>(elements - sums.non_finite);
  TensorSummary summary{.rms = std::sqrt(sums.squares / finite),  // 0 / 0 is NaN
                        .min = sums.min,
                        .max = sums.max,
                        .non_finite = sums.non_finite,
                        .zeros = sums.magnitudes.front()};
  const auto is_filled = [](int64_t count) { return count > 0; };
  const auto begin = std::find_if(sums.magnitudes.begin() + 1, sums.magnitudes.end(), is_filled);
  if (begin == sums.magnitudes.end()) return summary;
  const auto end = std::find_if(sums.magnitudes.rbegin(), sums.magnitudes.rend(), is_filled).base();
  summary.first = kLowestMagnitude + static_cast<int>(begin - sums.magnitudes.begin()) - 1;
  summary.counts.assign(begin, end);
  return summary;
}

}  // namespace

std::vector<TensorRecord> tensor_records(const std::vector<WeightStatistics>& weights) {
  std::vector<TensorRecord> records;
  for (const WeightStatistics& one : weights) {
    records.push_back({.name = one.name,
                       .elements = one.elements,
                       .weights = summary_of(one.of(Measured::kWeights), one.elements),
                       .gradients = summary_of(one.of(Measured::kGradients), one.elements),
                       .updates = summary_of(one.of(Measured::kUpdates), one.elements)});
  }
  return records;
}

}  // namespace tokamak

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

void append_records(const std::vector<WeightStatistics>& weights, std::vector<TensorRecord>& records) {
  for (const WeightStatistics& one : weights) {
    TensorRecord& record = records.emplace_back(TensorRecord{one.name, one.elements, {}});
    const auto add = [&](const std::string& kind, const TensorSums& sums) {
      record.parts.push_back({kind, summary_of(sums, one.elements)});
    };
    add(tensor_kinds::kWeights, one.of(Measured::kWeights));
    add(tensor_kinds::kGradients, one.of(Measured::kGradients));
    add(tensor_kinds::kUpdates, one.of(Measured::kUpdates));
    for (const auto& [kind, sums] : one.state) add(kind, sums);
  }
}

void append_records(const std::vector<ActivationStatistics::Activation>& activations,
                    std::vector<TensorRecord>& records) {
  for (const auto& [name, sums] : activations) {
    const int64_t elements = sums.elements();
    records.push_back({name, elements, {{tensor_kinds::kActivations, summary_of(sums, elements)}}});
  }
}

}  // namespace tokamak

#include "report/tensor_map.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "monitor/history.h"

namespace tokamak {

// A later record of a step replaces the earlier ones, as in monitor/history.h.
void TensorMapBuilder::see(const MetricRecord& record) {
  if (goes_back(record)) forget_from(record.step + 1);
  if (record.event || record.tensors.empty()) return;
  forget_from(record.step);
  Record& added = records_.emplace_back(Record{.step = record.step});
  for (const TensorRecord& tensor : record.tensors) {
    const auto [known, is_new] = rows_.try_emplace(tensor.name, rows());
    if (is_new) names_.push_back(tensor.name);
    added.values.push_back({.row = known->second,
                            .values = {static_cast<float>(tensor.weights.rms), static_cast<float>(tensor.gradients.rms),
                                       static_cast<float>(tensor.update_ratio())},
                            .non_finite = {tensor.weights.non_finite, tensor.gradients.non_finite, 0}});
  }
}

void TensorMapBuilder::forget_from(int64_t step) {
  while (!records_.empty() && records_.back().step >= step) records_.pop_back();
}

TensorMap TensorMapBuilder::map(int64_t most) const {
  TOKAMAK_CHECK(most > 0, "a map of at most ", most, " columns");
  const auto count = static_cast<int64_t>(records_.size());
  const int64_t each = std::max<int64_t>(1, (count + most - 1) / most), columns = (count + each - 1) / each;
  TensorMap map{.names = names_, .records = count};
  for (int64_t begin = 0; begin < count; begin += each) {
    const int64_t last = std::min(begin + each, count) - 1;
    map.columns.push_back({records_[static_cast<size_t>(begin)].step, records_[static_cast<size_t>(last)].step});
  }
  for (size_t kind = 0; kind < map.cells.size(); ++kind) {
    TensorMap::Cells& cells = map.cells[kind];
    cells.values.assign(static_cast<size_t>(rows() * columns), std::numeric_limits<float>::quiet_NaN());
    std::vector<int64_t> non_finite(cells.values.size(), 0);
    for (int64_t r = 0; r < count; ++r) {
      for (const Value& value : records_[static_cast<size_t>(r)].values) {
        const auto at = static_cast<size_t>(value.row * columns + r / each);
        cells.values[at] = std::fmax(cells.values[at], value.values[kind]);  // prefers a number to NaN
        non_finite[at] = std::max(non_finite[at], value.non_finite[kind]);
      }
    }
    for (int64_t at = 0; at < rows() * columns; ++at) {
      const int64_t elements = non_finite[static_cast<size_t>(at)];
      if (elements > 0) cells.non_finite.push_back({at / columns, at % columns, elements});
    }
  }
  return map;
}

}  // namespace tokamak

#include "report/tensor_map.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "monitor/history.h"

namespace tokamak {

namespace {

constexpr const char* kRatio = "ratio";

}  // namespace

const TensorMap::Kind& TensorMap::kind(const std::string& name) const {
  for (const Kind& one : kinds) {
    if (one.name == name) return one;
  }
  TOKAMAK_UNREACHABLE("a map without ", name);
}

int64_t TensorMapBuilder::kind_of(const std::string& name) {
  const auto found = std::find(kinds_.begin(), kinds_.end(), name);
  if (found != kinds_.end()) return found - kinds_.begin();
  kinds_.push_back(name);
  return std::ssize(kinds_) - 1;
}

// A later record of a step replaces the earlier ones, as in monitor/history.h.
void TensorMapBuilder::see(const MetricRecord& record) {
  if (goes_back(record)) forget_from(record.step + 1);
  if (record.event || record.tensors.empty()) return;
  forget_from(record.step);
  Record& added = records_.emplace_back(Record{.step = record.step});
  for (const TensorRecord& tensor : record.tensors) {
    const auto [known, is_new] = rows_.try_emplace(tensor.name, rows());
    if (is_new) names_.push_back(tensor.name);
    const auto add = [&, row = known->second](const std::string& kind, double value, int64_t non_finite) {
      added.values.push_back({row, kind_of(kind), static_cast<float>(value), non_finite});
    };
    for (const auto& [kind, values] : tensor.parts) {
      if (kind == tensor_kinds::kUpdates) {
        add(kRatio, tensor.update_ratio(), 0);
      } else {
        add(kind, kind == tensor_kinds::kActivations ? values.greatest() : values.rms, values.non_finite);
      }
    }
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
  const auto cells = static_cast<size_t>(rows() * columns);
  std::vector<std::vector<int64_t>> non_finite(kinds_.size(), std::vector<int64_t>(cells, 0));
  for (const std::string& name : kinds_) {
    map.kinds.push_back({name, std::vector<float>(cells, std::numeric_limits<float>::quiet_NaN()), {}});
  }
  for (int64_t r = 0; r < count; ++r) {
    for (const Value& one : records_[static_cast<size_t>(r)].values) {
      const auto at = static_cast<size_t>(one.row * columns + r / each), kind = static_cast<size_t>(one.kind);
      float& cell = map.kinds[kind].values[at];
      cell = std::fmax(cell, one.value);  // prefers a number to NaN
      non_finite[kind][at] = std::max(non_finite[kind][at], one.non_finite);
    }
  }
  for (size_t kind = 0; kind < map.kinds.size(); ++kind) {
    for (int64_t at = 0; at < rows() * columns; ++at) {
      const int64_t elements = non_finite[kind][static_cast<size_t>(at)];
      if (elements > 0) map.kinds[kind].non_finite.push_back({at / columns, at % columns, elements});
    }
  }
  return map;
}

}  // namespace tokamak

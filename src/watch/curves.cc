#include "watch/curves.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "monitor/history.h"

namespace tokamak {

namespace {

constexpr std::string_view kEvaluation = "evals/";
constexpr size_t kMostEvaluations = 32;  // a terminal shows fewer

bool is_drawn(const std::string& name) {
  if (name == kBitsPerByte) return true;
  return std::any_of(std::begin(kChartKinds), std::end(kChartKinds),
                     [&](const ChartKind& kind) { return name == kind.name || name == kind.second; });
}

}  // namespace

void Curves::see(const MetricRecord& record) {
  if (!sets_course(record)) return;
  for (auto& [name, points] : points_) {
    while (!points.empty() && points.back().step > record.step) points.pop_back();
  }
  if (record.event) return;
  for (const NamedValue& one : record.values) {
    if (!std::isfinite(one.value)) continue;
    const bool is_evaluation = starts_with(one.name, kEvaluation);
    if (!is_evaluation && !is_drawn(one.name)) continue;
    if (is_evaluation && !points_.contains(one.name)) {
      if (evaluations_.size() == kMostEvaluations) continue;
      evaluations_.push_back(one.name);
    }
    std::vector<SeriesPoint>& points = points_[one.name];
    if (!points.empty() && points.back().step == record.step) points.pop_back();
    points.push_back({.step = record.step, .mean = one.value, .low = one.value, .high = one.value});
  }
}

const std::vector<SeriesPoint>& Curves::of(const std::string& name) const {
  const auto found = points_.find(name);
  return found == points_.end() ? none_ : found->second;
}

}  // namespace tokamak

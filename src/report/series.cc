#include "report/series.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/error.h"

namespace tokamak {

namespace {

constexpr double kHour = 3.6e6;  // milliseconds

SeriesPoint bucket_of(const SeriesPoint* begin, const SeriesPoint* end) {
  SeriesPoint bucket = *(end - 1);
  double sum = 0;
  for (const SeriesPoint* point = begin; point != end; ++point) {
    sum += point->mean;
    bucket.low = std::min(bucket.low, point->low);
    bucket.high = std::max(bucket.high, point->high);
  }
  bucket.mean = sum / static_cast<double>(end - begin);
  return bucket;
}

}  // namespace

std::vector<SeriesPoint> downsample(const std::vector<SeriesPoint>& points, int64_t most) {
  TOKAMAK_CHECK(most > 0, "a series of at most ", most, " points");
  const auto count = static_cast<int64_t>(points.size());
  if (count <= most) return points;
  const int64_t each = (count + most - 1) / most;
  std::vector<SeriesPoint> buckets;
  for (int64_t begin = 0; begin < count; begin += each) {
    buckets.push_back(bucket_of(points.data() + begin, points.data() + std::min(begin + each, count)));
  }
  return buckets;
}

TokenScale::TokenScale(const std::vector<MetricRecord>& records) : marks_{{}} {
  for (const MetricRecord& record : records) {
    if (record.step > marks_.back().step && record.has("tokens")) marks_.push_back({record.step, record.at("tokens")});
  }
}

int64_t TokenScale::at(int64_t step) const {
  if (marks_.size() == 1) return 0;
  const auto found = std::lower_bound(marks_.begin() + 1, marks_.end() - 1, step,
                                      [](const Mark& mark, int64_t wanted) { return mark.step < wanted; });
  const Mark& from = *(found - 1);
  const double slope = (found->tokens - from.tokens) / static_cast<double>(found->step - from.step);
  return std::llround(from.tokens + slope * static_cast<double>(step - from.step));
}

std::vector<Series> series_of(const std::vector<MetricRecord>& records, int64_t begin, int64_t most,
                              const TokenScale& scale) {
  std::vector<Series> all;
  std::unordered_map<std::string, size_t> known;
  for (const MetricRecord& record : records) {
    if (record.time == 0) continue;
    const double hours = static_cast<double>(record.time - begin) / kHour;
    const int64_t tokens = record.has("tokens") ? std::llround(record.at("tokens")) : scale.at(record.step);
    for (const NamedValue& one : record.values) {
      if (one.name == "tokens" || !std::isfinite(one.value)) continue;
      const auto [found, is_new] = known.try_emplace(one.name, all.size());
      if (is_new) all.push_back({one.name});
      all[found->second].points.push_back({record.step, tokens, hours, one.value, one.value, one.value});
    }
  }
  for (Series& series : all) {
    series.records = static_cast<int64_t>(series.points.size());
    series.points = downsample(series.points, most);
  }
  return all;
}

}  // namespace tokamak

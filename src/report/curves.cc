#include "report/curves.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "monitor/history.h"

namespace tokamak {

namespace {

CurvePoint bucket_of(const CurvePoint* begin, const CurvePoint* end) {
  CurvePoint bucket = *(end - 1);
  double sum = 0;
  for (const CurvePoint* point = begin; point != end; ++point) {
    sum += point->mean;
    bucket.low = std::min(bucket.low, point->low);
    bucket.high = std::max(bucket.high, point->high);
  }
  bucket.mean = sum / static_cast<double>(end - begin);
  return bucket;
}

}  // namespace

void Curves::see(const MetricRecord& record) {
  if (sets_course(record)) {
    for (auto& [name, points] : points_) {
      while (!points.empty() && points.back().step > record.step) points.pop_back();
    }
  }
  if (record.event && !record.is("checkpoint")) return;
  if (record.time > 0) time_ = record.time;
  tokens_ = std::llround(record.value_or("tokens", double(tokens_)));
  for (const NamedValue& one : record.values) {
    if (one.name == "tokens" || !std::isfinite(one.value) || (wanted_ && !wanted_(one.name))) continue;
    const auto [found, is_new] = points_.try_emplace(one.name);
    if (is_new) names_.push_back(one.name);
    std::vector<CurvePoint>& points = found->second;
    while (!points.empty() && points.back().step >= record.step) points.pop_back();
    points.push_back({record.step, tokens_, time_, one.value, one.value, one.value});
  }
}

const std::vector<CurvePoint>& Curves::of(const std::string& name) const {
  static const std::vector<CurvePoint> kNone;
  const auto found = points_.find(name);
  return found == points_.end() ? kNone : found->second;
}

std::vector<CurvePoint> downsample(const std::vector<CurvePoint>& points, int64_t most) {
  TOKAMAK_CHECK(most > 0, "a curve of at most ", most, " points");
  const auto count = static_cast<int64_t>(points.size());
  if (count <= most) return points;
  const int64_t each = (count + most - 1) / most;
  std::vector<CurvePoint> buckets;
  for (int64_t begin = 0; begin < count; begin += each) {
    buckets.push_back(bucket_of(points.data() + begin, points.data() + std::min(begin + each, count)));
  }
  return buckets;
}

}  // namespace tokamak

#include "report/series.h"

#include <catch2/catch.hpp>

using namespace tokamak;

namespace {

std::vector<SeriesPoint> noise(int64_t count) {
  std::vector<SeriesPoint> points;
  for (int64_t i = 1; i <= count; ++i) {
    const double value = static_cast<double>(i * 7919 % 97);
    points.push_back({i, 100 * i, 0.5 * static_cast<double>(i), value, value, value});
  }
  return points;
}

}  // namespace

TEST_CASE("a long series is cut into buckets that keep a spike of one record, the range and the mean") {
  std::vector<SeriesPoint> points = noise(100'000);
  points[54'320].mean = points[54'320].low = points[54'320].high = 1e6;
  points[70'000].mean = points[70'000].low = points[70'000].high = -5;
  const std::vector<SeriesPoint> buckets = downsample(points, 1000);
  REQUIRE(buckets.size() == 1000);
  double sum = 0, all = 0;
  for (const SeriesPoint& point : points) all += point.mean;
  for (size_t i = 0; i < buckets.size(); ++i) {
    const SeriesPoint& bucket = buckets[i];
    sum += 100 * bucket.mean;
    CHECK(bucket.high == (i == 543 ? 1e6 : 96));  // 0 to 96 in turn: each bucket of 100 has all of them
    CHECK(bucket.low == (i == 700 ? -5 : 0));
    CHECK(bucket.step == 100 * static_cast<int64_t>(i + 1));
    CHECK(bucket.tokens == 100 * bucket.step);
  }
  CHECK(sum == Approx(all).epsilon(1e-12));
}

TEST_CASE("a series is cut to as many points as there may be, and a shorter one is left as it is") {
  for (const int64_t count : {1, 2, 9, 10, 11, 19, 20, 21, 101}) {
    const std::vector<SeriesPoint> buckets = downsample(noise(count), 10);
    CHECK(buckets.size() <= 10);
    CHECK(buckets.back().step == count);
    if (count <= 10) CHECK(static_cast<int64_t>(buckets.size()) == count);
  }
  CHECK(downsample({}, 10).empty());
}

TEST_CASE("tokens before a step are what the records say, in proportion between them") {
  const auto record = [](int64_t step, double tokens) {
    return MetricRecord{.step = step, .time = 1, .values = {{"tokens", tokens}, {"loss/avg", 1}}};
  };
  const TokenScale scale({record(10, 1000), {.step = 15, .values = {{"loss/avg", 1}}}, record(20, 3000)});  // a stage
  CHECK((scale.at(0) == 0 && scale.at(5) == 500 && scale.at(10) == 1000));
  CHECK((scale.at(15) == 2000 && scale.at(20) == 3000 && scale.at(25) == 4000));
  CHECK(TokenScale({}).at(7) == 0);
}

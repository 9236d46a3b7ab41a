#include "report/curves.h"

#include <catch2/catch.hpp>
#include <random>
#include <set>

#include "monitor/history.h"
#include "support/run_records.h"

using namespace tokamak;

namespace {

using Pairs = std::vector<std::pair<int64_t, double>>;

Pairs pairs(const std::vector<CurvePoint>& points) {
  Pairs all;
  for (const CurvePoint& point : points) all.emplace_back(point.step, point.mean);
  return all;
}

std::vector<CurvePoint> noise(int64_t count) {
  std::vector<CurvePoint> points;
  for (int64_t i = 1; i <= count; ++i) {
    const double value = static_cast<double>(i * 7919 % 97);
    points.push_back({i, 100 * i, 500 * i, value, value, value});
  }
  return points;
}

}  // namespace

TEST_CASE("steps that are trained again replace their first version, as in the history of a run") {
  std::mt19937 random(3);
  for (int run = 0; run < 50; ++run) {
    Curves curves;
    std::vector<MetricRecord> history;
    std::set<std::string> names;
    const auto see = [&](const MetricRecord& record) {
      curves.see(record);
      add_to_history(history, record);
      for (const NamedValue& one : record.values) {
        if (!record.event && one.name != "tokens") names.insert(one.name);
      }
    };
    int64_t step = 0;
    for (int i = 0; i < 60; ++i) {
      if (random() % 8 == 0) {
        step = 10 * static_cast<int64_t>(random() % static_cast<unsigned>(step / 10 + 1));
        see(start(i));
        if (random() % 2 == 0) see(event(i, step, "resume"));
        see(ready(i, step));
        see(interval(i, step, static_cast<double>(random() % 1000)));  // once more, at the same step
      }
      step += 10;
      see(interval(i, step, static_cast<double>(random() % 1000)));
      if (random() % 3 == 0) {
        see({.step = step,
             .time = at(i),
             .values = {count_value("tokens", step), {"validation/loss", static_cast<double>(random() % 1000)}}});
      }
      see(event(i, step, "straggler", "", {{"seconds", 0.5}}));
    }
    CHECK(names.size() >= 5);
    for (const std::string& name : names) {
      Pairs expected;
      for (const MetricRecord& record : history) {
        if (record.has(name)) expected.emplace_back(record.step, record.at(name));
      }
      CHECK(pairs(curves.of(name)) == expected);
    }
    CHECK(curves.of("seconds").empty());
  }
}

TEST_CASE("only wanted values have curves; a save without tokens has those of the record before it") {
  Curves curves([](std::string_view name) { return name != "optim/lr"; });
  curves.see(interval(12, 10, 3));
  curves.see(event(13, 12, "checkpoint", "", {{"checkpoint/stall", 0.5}}));
  CHECK((curves.of("optim/lr").empty() && pairs(curves.of("loss/avg")) == Pairs{{10, 3}}));
  const CurvePoint& save = curves.of("checkpoint/stall").at(0);
  CHECK((save.step == 12 && save.tokens == 20000 && save.time == at(13)));
}

TEST_CASE("a long curve is cut into buckets that keep a spike of one record, the range and the mean") {
  std::vector<CurvePoint> points = noise(100'000);
  points[54'320].mean = points[54'320].low = points[54'320].high = 1e6;
  points[70'000].mean = points[70'000].low = points[70'000].high = -5;
  const std::vector<CurvePoint> buckets = downsample(points, 1000);
  REQUIRE(buckets.size() == 1000);
  double sum = 0, all = 0;
  for (const CurvePoint& point : points) all += point.mean;
  for (size_t i = 0; i < buckets.size(); ++i) {
    const CurvePoint& bucket = buckets[i];
    sum += 100 * bucket.mean;
    CHECK(bucket.high == (i == 543 ? 1e6 : 96));  // 0 to 96 in turn: each bucket of 100 has all of them
    CHECK(bucket.low == (i == 700 ? -5 : 0));
    CHECK((bucket.step == 100 * static_cast<int64_t>(i + 1) && bucket.tokens == 100 * bucket.step));
  }
  CHECK(sum == Approx(all).epsilon(1e-12));
  for (const int64_t count : {1, 2, 9, 10, 11, 19, 20, 21, 101}) {
    const std::vector<CurvePoint> few = downsample(noise(count), 10);
    CHECK((few.size() <= 10 && few.back().step == count));
    if (count <= 10) CHECK(std::ssize(few) == count);
  }
  CHECK(downsample({}, 10).empty());
}

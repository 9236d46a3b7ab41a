#include "watch/curves.h"

#include <catch2/catch.hpp>
#include <random>

#include "monitor/history.h"
#include "watch/records.h"

using namespace tokamak;

namespace {

std::vector<std::pair<int64_t, double>> pairs(const std::vector<SeriesPoint>& points) {
  std::vector<std::pair<int64_t, double>> all;
  for (const SeriesPoint& point : points) all.emplace_back(point.step, point.mean);
  return all;
}

}  // namespace

TEST_CASE("steps that are trained again replace their first version, as in the report's curves") {
  std::mt19937 random(3);
  for (int course = 0; course < 50; ++course) {
    Curves curves;
    History history;
    const auto see = [&](const MetricRecord& record) {
      curves.see(record);
      history.see(record);
    };
    int64_t step = 0;
    for (int i = 0; i < 60; ++i) {
      if (random() % 8 == 0) {
        step = 10 * static_cast<int64_t>(random() % static_cast<unsigned>(step / 10 + 1));
        see(start(i));
        if (random() % 2 == 0) see(event(i, step, "resume"));
        see(ready(i, step));
      }
      step += 10;
      see(interval(i, step, static_cast<double>(random() % 1000)));
      if (random() % 3 == 0) {
        see({.step = step,
             .time = at(i),
             .values = {count_value("tokens", step), {"validation/loss", static_cast<double>(random() % 1000)}}});
      }
      see(event(i, step, "checkpoint", "", {{"checkpoint/stall", 0.5}}));
    }
    const std::vector<Series> expected = series_of(history.records(), kBegin, 1'000'000, TokenScale({}));
    for (const Series& series : expected) {
      if (series.name != "time/interval") CHECK(pairs(curves.of(series.name)) == pairs(series.points));
    }
    CHECK(curves.of("time/interval").empty());  // no chart has it
  }
}

TEST_CASE("evaluations have curves of their own; statistics of tensors, of which there are thousands, have none") {
  Curves curves;
  curves.see({.step = 10, .values = {{"evals/arc/acc", 0.5}, {"weights/layers.0.q/rms", 1}}});
  CHECK(curves.evaluations() == std::vector<std::string>{"evals/arc/acc"});
  CHECK(pairs(curves.of("evals/arc/acc")) == std::vector<std::pair<int64_t, double>>{{10, 0.5}});
  CHECK(curves.of("weights/layers.0.q/rms").empty());
}

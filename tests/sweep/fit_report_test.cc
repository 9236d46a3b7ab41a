#include "sweep/fit_report.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "sweep/runs_of_a_law.h"

using namespace tokamak;
using Catch::Contains;

namespace {

constexpr int64_t kFewSamples = 40;

const FittedValue& value_of(const FitReport& report, const std::string& name) {
  for (const FittedValue& one : report.values) {
    if (starts_with(one.name, name)) return one;
  }
  throw std::runtime_error("no value " + name);
}

// Sizes times horizons; `factor`: from one horizon to the next.
std::vector<LossPoint> grid_of(int sizes, int horizons, double factor) {
  std::vector<LossPoint> points;
  for (int i = 0; i < sizes; ++i) {
    for (int j = 0; j < horizons; ++j) {
      const double size = 1e6 * std::pow(2, i), tokens = size * 20 * std::pow(factor, j);
      points.push_back({size, tokens, kRefit.loss(size, tokens)});
    }
  }
  return points;
}

}  // namespace

TEST_CASE("a fit names its intervals, a budget's best run and the loss of a larger one") {
  const FitReport report =
      fit_runs(runs_of(kRefit, 0.005), {.budget = 1e20, .size = 1e9, .tokens = 2e10, .samples = 400});
  REQUIRE(report.warnings.empty());
  for (const FittedValue& one : report.values) {
    INFO(one.name);
    REQUIRE(one.low < one.value);
    REQUIRE(one.value < one.high);
  }
  const auto is_near = [&](const char* name, double truth) {
    const FittedValue& one = value_of(report, name);
    REQUIRE(one.low < truth);
    REQUIRE(truth < one.high);
  };
  is_near("best N", kRefit.best_size(1e20));
  is_near("best D", 1e20 / 6 / kRefit.best_size(1e20));
  is_near("loss of N 1.00B", kRefit.loss(1e9, 2e10));
  REQUIRE_THAT(fit_text(report), Contains("alpha") && Contains("error when left out"));
}

TEST_CASE("residuals and the error of a size that is left out are 0 without noise, and show a run that is off") {
  std::vector<LossPoint> points = grid_of(5, 4, 2);
  const FitReport exact = fit_runs(points, {.samples = kFewSamples});
  REQUIRE(exact.residual < 1e-9);
  for (const FittedSize& one : exact.sizes) REQUIRE(one.left_out < 1e-6);
  REQUIRE(exact.sizes.size() == 5);
  for (size_t i = 16; i < 20; ++i) points[i].loss *= 1.02;  // the largest size
  const FitReport off = fit_runs(points, {.samples = kFewSamples});
  REQUIRE(off.sizes.back().left_out == Approx(0.02 / 1.02).epsilon(1e-3));  // the other sizes still have the law
}

TEST_CASE("fewer than 3 sizes of 3 horizons are refused") {
  REQUIRE_NOTHROW(fit_runs(grid_of(3, 3, 2), {.samples = kFewSamples}));
  for (const auto& points : {grid_of(2, 6, 2), grid_of(6, 2, 2), grid_of(6, 1, 2)}) {
    REQUIRE_THROWS_WITH(fit_runs(points, {.samples = kFewSamples}), Contains("3 sizes of at least 3 horizons"));
  }
  std::vector<LossPoint> seeds = grid_of(3, 1, 2);  // repeated runs are no horizons
  seeds.insert(seeds.end(), seeds.begin(), seeds.end());
  seeds.insert(seeds.end(), seeds.begin(), seeds.end());
  REQUIRE_THROWS(fit_runs(seeds, {.samples = kFewSamples}));
}

TEST_CASE("a fit warns of a narrow range of D/N and of a far budget") {
  REQUIRE_THAT(fit_runs(grid_of(3, 3, 1.9), {.samples = kFewSamples}).warnings.at(0), Contains("3.61x"));
  REQUIRE(fit_runs(grid_of(3, 3, 2.1), {.samples = kFewSamples}).warnings.empty());
  const double largest = 6 * 4e6 * (4e6 * 20 * 4);  // FLOPs of the largest of 3 x 3 runs
  REQUIRE(fit_runs(grid_of(3, 3, 2), {.budget = 99 * largest, .samples = kFewSamples}).warnings.empty());
  REQUIRE_THAT(fit_runs(grid_of(3, 3, 2), {.budget = 101 * largest, .samples = kFewSamples}).warnings.at(0),
               Contains("101x"));
  REQUIRE(fit_runs(grid_of(3, 3, 2), {.size = 4e7, .tokens = 4e9, .samples = kFewSamples}).warnings.size() == 1);
}

TEST_CASE("N counts what --n says, and only finished runs count") {
  const SweepRow done{.body = 5, .head = 3, .total = 11, .tokens = 7, .loss = 2.5, .status = SweepStatus::kDone};
  SweepRow diverged = done, waiting = done;
  diverged.status = SweepStatus::kDiverged;
  waiting.loss.reset();
  const std::vector<SweepRow> rows = {done, diverged, waiting};
  for (const auto& [measure, size] :
       {std::pair{SizeMeasure::kBodyHead, 8.0}, {SizeMeasure::kBody, 5.0}, {SizeMeasure::kTotal, 11.0}}) {
    const std::vector<LossPoint> points = points_of(rows, measure);
    REQUIRE(points.size() == 1);
    REQUIRE(points[0].size == size);
  }
}

#include "sweep/fit_report.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "base/error.h"
#include "sweep/columns.h"

namespace tokamak {

namespace {

constexpr int64_t kFewestSizes = 3, kFewestHorizons = 3;
constexpr double kNarrowRatios = 4, kFarBudget = 100;

using Measure = std::function<double(const ScalingLaw&)>;

// Linear interpolation between order statistics. A value that is not defined, as the best N at alpha <= 0, is infinite.
double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * double(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const double low = sorted[below], high = sorted[std::min(below + 1, sorted.size() - 1)];
  return low == high ? low : low + (place - double(below)) * (high - low);
}

FittedValue with_interval(const std::string& name, const Measure& of, const ScalingLaw& law,
                          const std::vector<ScalingLaw>& drawn) {
  std::vector<double> values;
  for (const ScalingLaw& one : drawn) {
    const double value = of(one);
    values.push_back(std::isnan(value) ? std::numeric_limits<double>::infinity() : value);
  }
  std::sort(values.begin(), values.end());
  return {name, of(law), quantile(values, 0.025), quantile(values, 0.975)};
}

void expect_enough(const std::vector<LossPoint>& points) {
  std::map<double, std::set<double>> horizons;
  for (const LossPoint& point : points) horizons[point.size].insert(point.tokens);
  const int64_t enough = std::count_if(horizons.begin(), horizons.end(),
                                       [](const auto& one) { return std::ssize(one.second) >= kFewestHorizons; });
  if (enough >= kFewestSizes) return;
  fail(Kind::kConfig,
       str("a fit needs ", kFewestSizes, " sizes of at least ", kFewestHorizons, " horizons each, but of ",
           horizons.size(), " size(s) in ", points.size(), " finished run(s), ", enough, " have so many"),
       "sweep model.hidden_size or model.num_hidden_layers, and training.max_tokens");
}

std::vector<std::string> warnings_of(const std::vector<LossPoint>& points, const FitRequest& request) {
  double least = std::numeric_limits<double>::infinity(), most = 0, largest = 0;
  for (const LossPoint& point : points) {
    least = std::min(least, point.tokens / point.size);
    most = std::max(most, point.tokens / point.size);
    largest = std::max(largest, 6 * point.size * point.tokens);
  }
  std::vector<std::string> warnings;
  if (most < kNarrowRatios * least) {
    warnings.push_back(
        str("D/N of the runs spans only ", significant(most / least, 3),
            "x: the fit can hardly distinguish size from tokens; train the same sizes for other lengths"));
  }
  const double asked = std::max(request.budget, 6 * request.size * request.tokens);
  if (asked > kFarBudget * largest) {
    warnings.push_back(str("the budget, ", significant(asked, 3), " FLOPs, is ", significant(asked / largest, 3),
                           "x that of the largest run: the intervals hold only if the law itself holds so far"));
  }
  return warnings;
}

std::string percent(double share) { return fixed(100 * share, 2) + " %"; }

}  // namespace

std::vector<LossPoint> points_of(const std::vector<SweepRow>& rows, SizeMeasure measure) {
  std::vector<LossPoint> points;
  for (const SweepRow& row : rows) {
    if (row.status != SweepStatus::kDone || !row.loss || !(*row.loss > 0) || row.tokens < 1) continue;
    const int64_t size = measure == SizeMeasure::kTotal  ? row.total
                         : measure == SizeMeasure::kBody ? row.body
                                                         : row.body + row.head;
    if (size > 0) points.push_back({double(size), double(row.tokens), *row.loss});
  }
  return points;
}

FitReport fit_runs(const std::vector<LossPoint>& points, const FitRequest& request) {
  expect_enough(points);
  const LawObjective objective(points);
  const Minimum<5> fitted = fit_law(objective);
  const ScalingLaw law = objective.law_of(fitted.at);
  const std::vector<ScalingLaw> drawn = bootstrap(objective, fitted, request.samples);
  FitReport report{.runs = std::ssize(points), .warnings = warnings_of(points, request)};
  const auto add = [&](const std::string& name, const Measure& of) {
    report.values.push_back(with_interval(name, of, law, drawn));
  };
  add("E", [](const ScalingLaw& one) { return one.E; });
  add("A", [](const ScalingLaw& one) { return one.A; });
  add("B", [](const ScalingLaw& one) { return one.B; });
  add("alpha", [](const ScalingLaw& one) { return one.alpha; });
  add("beta", [](const ScalingLaw& one) { return one.beta; });
  add("a = beta / (alpha + beta)", [](const ScalingLaw& one) { return one.size_exponent(); });
  if (request.budget > 0) {
    const double flops = request.budget;
    const std::string at = str(" at ", significant(flops, 3), " FLOPs");
    const auto best_tokens = [flops](const ScalingLaw& one) { return flops / 6 / one.best_size(flops); };
    add("best N" + at, [flops](const ScalingLaw& one) { return one.best_size(flops); });
    add("best D" + at, best_tokens);
    add("loss" + at, [=](const ScalingLaw& one) { return one.loss(one.best_size(flops), best_tokens(one)); });
  }
  if (request.size > 0) {
    add(str("loss of N ", human_count(request.size), ", D ", human_count(request.tokens)),
        [&](const ScalingLaw& one) { return one.loss(request.size, request.tokens); });
  }
  std::map<double, std::vector<LossPoint>> by_size;
  for (const LossPoint& point : points) by_size[point.size].push_back(point);
  double squares = 0;
  for (const auto& [size, own] : by_size) {
    std::vector<LossPoint> others;
    std::copy_if(points.begin(), points.end(), std::back_inserter(others),
                 [&, size = size](const LossPoint& point) { return point.size != size; });
    const ScalingLaw of_others = fit_law(others);
    FittedSize of{.size = size, .runs = std::ssize(own)};
    for (const LossPoint& point : own) {
      const double residual = std::log(point.loss / law.loss(point.size, point.tokens));
      squares += residual * residual;
      of.residual += residual / double(own.size());
      of.left_out += std::abs(of_others.loss(point.size, point.tokens) / point.loss - 1) / double(own.size());
    }
    report.sizes.push_back(of);
  }
  report.residual = std::sqrt(squares / double(points.size()));
  return report;
}

std::string fit_text(const FitReport& report) {
  std::vector<std::vector<std::string>> values = {{"", "value", "95 % interval"}};
  for (const FittedValue& one : report.values) {
    values.push_back(
        {one.name, significant(one.value, 5), str("[", significant(one.low, 5), ", ", significant(one.high, 5), "]")});
  }
  std::vector<std::vector<std::string>> sizes = {{"N", "runs", "mean residual", "error when left out"}};
  for (const FittedSize& one : report.sizes) {
    sizes.push_back({human_count(one.size), str(one.runs), percent(one.residual), percent(one.left_out)});
  }
  return str("L(N, D) = E + A / N^alpha + B / D^beta, fitted to ", report.runs, " runs\n\n", columns_text(values),
             "\nresiduals of ln L: root mean square ", percent(report.residual), "\n\n", columns_text(sizes));
}

}  // namespace tokamak

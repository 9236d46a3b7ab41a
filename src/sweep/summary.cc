#include "sweep/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <set>

#include "base/strings.h"
#include "config/units.h"
#include "sweep/columns.h"

namespace tokamak {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// P(|T| < t)
double central_share(double t, int64_t degrees) {
  const double angle = std::atan(t / std::sqrt(double(degrees))), cosine = std::cos(angle);
  const bool is_odd = degrees % 2 != 0;
  double term = is_odd ? cosine : 1, sum = degrees == 1 ? 0 : term;
  for (int64_t k = is_odd ? 3 : 2; k <= degrees - 2; k += 2) {
    term *= cosine * cosine * double(k - 1) / double(k);
    sum += term;
  }
  return is_odd ? 2 / std::numbers::pi * (angle + std::sin(angle) * sum) : std::sin(angle) * sum;
}

struct ArmRows {
  SweepArm arm;
  std::map<int64_t, double> loss_of_seed;
};

std::string interval_text(const SampleStatistics& of) {
  if (std::isnan(of.deviation)) return "-";
  return str("[", fixed(of.mean - of.half_width(), 4), ", ", fixed(of.mean + of.half_width(), 4), "]");
}

}  // namespace

double student_t95(int64_t degrees) {
  double low = 0, high = 16;  // 12.71 is the largest, of one degree
  while (high - low > 1e-12) {
    const double middle = 0.5 * (low + high);
    (central_share(middle, degrees) < 0.95 ? low : high) = middle;
  }
  return high;
}

double SampleStatistics::half_width() const {
  return count < 2 ? kNaN : student_t95(count - 1) * deviation / std::sqrt(double(count));
}

SampleStatistics statistics_of(const std::vector<double>& values) {
  SampleStatistics of{.count = std::ssize(values), .mean = kNaN, .deviation = kNaN};
  if (values.empty()) return of;
  of.mean = 0;
  for (const double value : values) of.mean += value / double(of.count);
  if (of.count < 2) return of;
  double squares = 0;
  for (const double value : values) squares += (value - of.mean) * (value - of.mean);
  of.deviation = std::sqrt(squares / double(of.count - 1));
  return of;
}

std::vector<SweepArm> arms_of(const std::vector<SweepRow>& rows) {
  std::map<std::string, ArmRows> by_overrides;
  for (const SweepRow& row : rows) {
    std::string words;
    for (const NamedText& one : row.overrides) words += str(one.name, "=", one.text, "\n");
    ArmRows& of = by_overrides[words];
    of.arm.overrides = row.overrides;
    if (row.status == SweepStatus::kDone && row.loss) {
      of.loss_of_seed[row.seed] = *row.loss;
    } else {
      ++(row.status == SweepStatus::kDiverged ? of.arm.diverged : of.arm.unfinished);
    }
  }
  std::vector<ArmRows> found;
  for (auto& [words, of] : by_overrides) {
    std::vector<double> losses;
    for (const auto& [seed, loss] : of.loss_of_seed) losses.push_back(loss);
    of.arm.loss = statistics_of(losses);
    found.push_back(std::move(of));
  }
  const auto order = [](const ArmRows& of) { return of.loss_of_seed.empty() ? INFINITY : of.arm.loss.mean; };
  std::stable_sort(found.begin(), found.end(), [&](const ArmRows& a, const ArmRows& b) { return order(a) < order(b); });
  std::vector<SweepArm> arms;
  for (ArmRows& of : found) {
    std::vector<double> differences;
    for (const auto& [seed, loss] : of.loss_of_seed) {
      const auto best = found[0].loss_of_seed.find(seed);
      if (best != found[0].loss_of_seed.end()) differences.push_back(loss - best->second);
    }
    of.arm.behind_best = statistics_of(differences);
    arms.push_back(of.arm);
  }
  return arms;
}

std::vector<std::string> edge_warnings(const std::vector<SweepArm>& arms) {
  std::vector<std::string> warnings;
  if (arms.empty() || arms[0].loss.count == 0) return warnings;
  for (const NamedText& best : arms[0].overrides) {
    const std::optional<double> value = parse_number(best.text).value;
    std::set<double> values;
    for (const SweepArm& arm : arms) {
      for (const NamedText& one : arm.overrides) {
        const std::optional<double> number = parse_number(one.text).value;
        if (one.name == best.name && number) values.insert(*number);
      }
    }
    if (!value || values.size() < 2 || (*value != *values.begin() && *value != *values.rbegin())) continue;
    warnings.push_back(str("the best ", best.name, ", ", best.text, ", is at the edge of its grid, ", *values.begin(),
                           " to ", *values.rbegin(), ": try values beyond it"));
  }
  return warnings;
}

std::string summary_text(const std::vector<SweepArm>& arms) {
  std::set<std::string> names;
  for (const SweepArm& arm : arms) {
    for (const NamedText& one : arm.overrides) names.insert(one.name);
  }
  std::vector<std::vector<std::string>> lines(1, {names.begin(), names.end()});
  for (const char* title : {"n", "loss", "s", "95 % interval", "minus best", "95 % interval", "not counted"}) {
    lines[0].push_back(title);
  }
  for (const SweepArm& arm : arms) {
    std::vector<std::string>& line = lines.emplace_back();
    for (const std::string& name : names) {
      const auto is_named = [&](const NamedText& one) { return one.name == name; };
      const auto found = std::find_if(arm.overrides.begin(), arm.overrides.end(), is_named);
      line.push_back(found == arm.overrides.end() ? "-" : found->text);
    }
    const auto number = [](double value) { return std::isnan(value) ? "-" : fixed(value, 4); };
    line.insert(line.end(), {str(arm.loss.count), number(arm.loss.mean), number(arm.loss.deviation),
                             interval_text(arm.loss), number(arm.behind_best.mean), interval_text(arm.behind_best)});
    std::string others = arm.diverged > 0 ? str(arm.diverged, " diverged") : "";
    if (arm.unfinished > 0) others += str(others.empty() ? "" : ", ", arm.unfinished, " unfinished");
    line.push_back(others);
  }
  return columns_text(lines);
}

}  // namespace tokamak

#include "resilience/stragglers.h"

#include <algorithm>
#include <cmath>

#include "base/median.h"

namespace tokamak {

std::vector<Straggler> StragglerDetector::see(const std::vector<double>& seconds) {
  std::vector<Straggler> found;
  if (seconds.size() < kLeastRanks) return found;
  over_.resize(seconds.size());
  const double median = median_of(seconds);
  std::vector<double> deviations;
  for (const double value : seconds) deviations.push_back(std::abs(value - median));
  const double bound = median + std::max(kDeviations * median_of(deviations), kShare * median);
  for (size_t r = 0; r < seconds.size(); ++r) {
    over_[r] = seconds[r] > bound ? over_[r] + 1 : 0;
    if (over_[r] == kIntervals) found.push_back({.rank = static_cast<int>(r), .seconds = seconds[r], .median = median});
  }
  return found;
}

}  // namespace tokamak

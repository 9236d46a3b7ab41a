#include "resilience/limits.h"

#include <algorithm>

#include "base/strings.h"

namespace tokamak {

double Limits::of_phase(const PhaseGaps& gaps) const {
  const double least = gaps.passed == 0 ? kUnmeasured * floor : floor;
  return std::min(std::max(kGaps * gaps.longest, least), ceiling);
}

std::string Limits::text(const PhaseGaps& gaps) const {
  return str(kGaps, " x the longest pause so far (", fixed(gaps.longest, 3), " s), at least ",
             gaps.passed == 0 ? str(kUnmeasured, " x ") : "", "resilience.watchdog_min (", floor, " s)",
             gaps.passed == 0 ? ", as the phase was never passed before" : "", ", at most resilience.watchdog_max (",
             ceiling, " s)");
}

}  // namespace tokamak

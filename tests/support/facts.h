// Facts from a test program to scripts/gpu_check: one JSON line each, appended to the file TOKAMAK_FACTS. Without that
// variable nothing is written. The runner adds a fact when a case begins and when it ends (catch.cc).
#pragma once

#include <algorithm>
#include <limits>
#include <ostream>
#include <string>

namespace tokamak {

// {"fact": "measured", "name": ..., "value": ..., "unit": ...}
void tell_measured(const std::string& name, double value, const std::string& unit);

// The greatest error of a case as a share of its tolerance: above 1, the case fails.
inline double& worst_share() {
  static double share = 0;
  return share;
}

// An error that a case compares with its tolerance.
struct Deviation {
  double value;
  operator double() const { return value; }
};
inline bool operator<(const Deviation& error, double tolerance) {
  worst_share() = std::max(worst_share(), error.value / std::max(tolerance, std::numeric_limits<double>::min()));
  return error.value < tolerance;
}
inline std::ostream& operator<<(std::ostream& out, const Deviation& error) { return out << error.value; }

}  // namespace tokamak

// The median of measurements.
#pragma once

#include <algorithm>
#include <vector>

namespace tokamak {

// The mean of the middle two if the number is even; 0 if there are no values.
inline double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

}  // namespace tokamak

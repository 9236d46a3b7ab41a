// Statistics of a tensor on the host, put together from those of its parts (ops.h, Statistics).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

#include "backend/ops.h"

namespace tokamak {

struct TensorSums {
  double min = std::numeric_limits<double>::infinity(), max = -std::numeric_limits<double>::infinity();
  double squares = 0;
  int64_t non_finite = 0;  // these values count nowhere else
  std::array<int64_t, kMagnitudeBins> magnitudes{};

  void add(const double* statistics) {  // (kStatistics) of a part
    min = std::min(min, statistics[kMin]);
    max = std::max(max, statistics[kMax]);
    squares += statistics[kSquares];
    non_finite += std::llround(statistics[kNonFinite]);
  }
  void add_magnitudes(const double* counts) {  // (kMagnitudeBins) of some parts
    for (size_t bin = 0; bin < magnitudes.size(); ++bin) magnitudes[bin] += std::llround(counts[bin]);
  }
  int64_t elements() const { return std::accumulate(magnitudes.begin(), magnitudes.end(), non_finite); }
};

}  // namespace tokamak

// The scaling law of a sweep's finished runs, with bootstrapped intervals, residuals and warnings. The error for a size
// whose runs were left out of the fit shows how far the law can be trusted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sweep/scaling_law.h"
#include "sweep/table.h"

namespace tokamak {

enum class SizeMeasure { kBodyHead, kBody, kTotal };
inline const std::vector<std::string>& enum_names(SizeMeasure) {
  static const std::vector<std::string> names = {"body+head", "body", "total"};
  return names;
}

// The finished runs of a table; their last validation losses.
std::vector<LossPoint> points_of(const std::vector<SweepRow>& rows, SizeMeasure measure);

struct FitRequest {
  double budget = 0;            // FLOPs, C = 6 N D; 0: none
  double size = 0, tokens = 0;  // of a run whose loss is asked for; 0: none
  int64_t samples = 4000;       // of the bootstrap
};

struct FittedValue {
  std::string name;
  double value = 0;
  double low = 0, high = 0;  // 95 % of the bootstrap's values lie between
};

struct FittedSize {
  double size = 0;
  int64_t runs = 0;
  double residual = 0;  // mean of ln L - ln L(N, D) over its runs
  double left_out = 0;  // mean |error| of predictions by the law of the other sizes, relative to the loss
};

struct FitReport {
  int64_t runs = 0;
  double residual = 0;  // root mean square of ln L - ln L(N, D)
  std::vector<FittedValue> values;
  std::vector<FittedSize> sizes;  // ascending
  std::vector<std::string> warnings;
};

// Error(kConfig) unless at least 3 sizes have at least 3 horizons each: with fewer, N and D cannot be told apart.
FitReport fit_runs(const std::vector<LossPoint>& points, const FitRequest& request);

std::string fit_text(const FitReport& report);

}  // namespace tokamak

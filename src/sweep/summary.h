// The comparison of a sweep's arms: mean loss over seeds, and the difference to the best arm, paired by seed. Arms that
// share seeds share initial weights and data order, so a paired difference is less noisy than the means.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sweep/table.h"

namespace tokamak {

// t with P(|T| < t) = 0.95 for Student's distribution of `degrees` >= 1 degrees of freedom (Abramowitz and Stegun,
// 26.7.3 and 26.7.4).
double student_t95(int64_t degrees);

struct SampleStatistics {
  int64_t count = 0;
  double mean = 0;
  double deviation = 0;       // s, with count - 1; NaN for fewer than 2 values
  double half_width() const;  // of the 95 % interval of the mean; NaN likewise
};
SampleStatistics statistics_of(const std::vector<double>& values);

// The runs that differ in their seeds alone.
struct SweepArm {
  std::vector<NamedText> overrides;
  SampleStatistics loss;         // of the finished runs
  SampleStatistics behind_best;  // loss minus the best arm's, over the seeds that both have finished
  int64_t diverged = 0, unfinished = 0;
};

// By mean loss, the best first; arms without a finished run come last.
std::vector<SweepArm> arms_of(const std::vector<SweepRow>& rows);

// A sentence for each numeric key whose best value is the least or the greatest of several.
std::vector<std::string> edge_warnings(const std::vector<SweepArm>& arms);

std::string summary_text(const std::vector<SweepArm>& arms);

}  // namespace tokamak

// The coordinate check of muP (Yang et al. 2022, arXiv 2203.03466, appendix D.1). Small models of several widths, then
// of several depths, train for a few steps on one random batch. If learning rates and initial values suit every size,
// no value of the forward pass grows or shrinks with it. Then the slope of its log RMS over the log size is near 0.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "train/run_config.h"

namespace tokamak {

struct CoordinateCheckOptions {
  std::vector<int64_t> widths = {64, 128, 256, 512};  // hidden_size, with 2 layers
  std::vector<int64_t> depths = {2, 4, 8, 16};        // num_hidden_layers, with the second width
  int64_t seeds = 5;
  int64_t steps = 10;
  double lr = 1e-3;
};

// A value may not grow faster than the size to the power of 0.1 from step 2 on, nor fall faster than to that of -0.2 at
// the last step. Sums of random initial values do fall, as logits with m^-0.5, until training outweighs them.
inline constexpr int64_t kFirstCheckedStep = 2;
inline constexpr double kLargestGrowth = 0.1, kLargestFall = 0.2;

struct CoordinateSlopes {
  std::string value;            // "logits"
  std::vector<double> of_step;  // 0, before training, to the last

  double growth() const;  // the largest slope of the checked steps; infinite if one is not finite
  double fall() const { return -of_step.back(); }
  bool passes() const { return growth() <= kLargestGrowth && fall() <= kLargestFall; }
};

struct CoordinateCheck {
  std::vector<CoordinateSlopes> by_width;
  std::vector<CoordinateSlopes> by_depth;     // of the same values; empty: with muP that leaves depth alone
  std::vector<std::string> failures() const;  // "logits by hidden_size"
};

// On one rank, in f32. Sizes, vocabulary and initializer_range are the check's own, and the base is the smallest model.
// All else is the config's: optimizer, groups, tied head, biases, norms of heads, ratios of sizes, model.mup on or off.
// Patterns of groups that match no weight of a small model are left out.
CoordinateCheck check_coordinates(const RunConfig& config, Backend& backend, const CoordinateCheckOptions& options);

}  // namespace tokamak

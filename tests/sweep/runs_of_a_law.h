// Losses that a known law and noise make: 6 sizes of 1M to 1B parameters, each at 6 horizons.
#pragma once

#include <cmath>
#include <vector>

#include "base/rng.h"
#include "base/strings.h"
#include "sweep/scaling_law.h"

namespace tokamak {

// The refit of Chinchilla's 240 runs (arXiv 2404.10102; epoch-research/analyzing-chinchilla).
inline constexpr ScalingLaw kRefit = {.E = 1.817, .A = 482, .B = 2085, .alpha = 0.348, .beta = 0.366};

// `noise`: standard deviation of ln L.
inline std::vector<LossPoint> runs_of(const ScalingLaw& law, double noise, int draw = 0) {
  const RandomStream random(5, str("tests/draw", draw));
  std::vector<LossPoint> points;
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 6; ++j) {
      const double size = 1e6 * std::pow(10, 0.6 * i), tokens = size * 5 * std::pow(2, j);
      points.push_back({size, tokens, law.loss(size, tokens) * std::exp(noise * random.normal(points.size()))});
    }
  }
  return points;
}

}  // namespace tokamak

#include "model/rope_table.h"

#include <cmath>

namespace tokamak {

std::vector<float> make_rope_table(int64_t positions, int64_t head_dim, double theta) {
  const int64_t half = head_dim / 2;
  std::vector<float> table(static_cast<size_t>(positions * head_dim));
  for (int64_t i = 0; i < half; ++i) {
    const double frequency = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
    for (int64_t p = 0; p < positions; ++p) {
      const double angle = static_cast<double>(p) * frequency;
      table[static_cast<size_t>(p * head_dim + i)] = static_cast<float>(std::cos(angle));
      table[static_cast<size_t>(p * head_dim + half + i)] = static_cast<float>(std::sin(angle));
    }
  }
  return table;
}

}  // namespace tokamak

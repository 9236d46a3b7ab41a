// The sum of a bf16 dot product as a tensor core forms it, from published models (Fasi et al. 2021; Khattak and
// Mikaitis 2025). It adds a group of products to the accumulator at once: aligned to the greatest of them, cut off
// below, and the sum cut off to f32. bf16 products are exact in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

namespace tokamak::testing {

struct TensorCore {
  int64_t group = 16;  // products per addition
  int extra_bits = 2;  // kept below the last bit of f32 while a group is added
  int accumulator_bits = 24;
};
inline constexpr TensorCore kAmpere = {8, 1}, kHopper = {16, 2};

// `x` without its bits below 2^lowest: rounded towards zero.
inline double truncated(double x, int lowest) { return std::ldexp(std::trunc(std::ldexp(x, -lowest)), lowest); }

inline double sum_by_tensor_core(std::span<const double> products, const TensorCore& core) {
  double accumulator = 0;
  for (size_t begin = 0; begin < products.size(); begin += static_cast<size_t>(core.group)) {
    const auto group = products.subspan(begin, std::min(products.size() - begin, static_cast<size_t>(core.group)));
    double greatest = std::abs(accumulator);
    for (const double x : group) greatest = std::max(greatest, std::abs(x));
    if (greatest == 0) continue;
    const int lowest = std::ilogb(greatest) - 23 - core.extra_bits;
    double sum = truncated(accumulator, lowest);
    for (const double x : group) sum += truncated(x, lowest);
    accumulator = sum == 0 ? 0 : truncated(sum, std::ilogb(sum) + 1 - core.accumulator_bits);
  }
  return accumulator;
}

}  // namespace tokamak::testing

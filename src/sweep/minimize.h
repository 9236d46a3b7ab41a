// Minimises a smooth function of N variables by BFGS (Nocedal and Wright 2006, algorithm 6.1). Its line search asks for
// the weak Wolfe conditions by bisection (Lewis and Overton 2013), so kinks of the second derivative do no harm.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

namespace tokamak {

template <size_t N>
using SmallVector = std::array<double, N>;
template <size_t N>
using SmallMatrix = std::array<SmallVector<N>, N>;

template <size_t N>
double dot(const SmallVector<N>& a, const SmallVector<N>& b) {
  double sum = 0;
  for (size_t i = 0; i < N; ++i) sum += a[i] * b[i];
  return sum;
}

template <size_t N>
SmallVector<N> times(const SmallMatrix<N>& m, const SmallVector<N>& v) {
  SmallVector<N> out;
  for (size_t i = 0; i < N; ++i) out[i] = dot(m[i], v);
  return out;
}

template <size_t N>
SmallVector<N> along(SmallVector<N> from, double step, const SmallVector<N>& direction) {
  for (size_t i = 0; i < N; ++i) from[i] += step * direction[i];
  return from;
}

template <size_t N>
SmallMatrix<N> identity() {
  SmallMatrix<N> m{};
  for (size_t i = 0; i < N; ++i) m[i][i] = 1;
  return m;
}

template <size_t N>
struct Minimum {
  SmallVector<N> at{};
  double value = std::numeric_limits<double>::infinity();
  SmallMatrix<N> inverse_hessian = identity<N>();  // as BFGS estimates it; a good start for a similar function
};

constexpr int kMostIterations = 500, kMostTrials = 60;

// `f(x, gradient)` returns the value, at least 0, and sets the gradient. Ends where no step along the direction lowers
// the value, or lowers it by no more than `least_fall` of it.
template <size_t N, class Function>
Minimum<N> minimize(const Function& f, Minimum<N> m, double least_fall = 1e-14) {
  SmallVector<N> gradient, next_gradient;
  m.value = f(m.at, gradient);
  for (int iteration = 0; iteration < kMostIterations; ++iteration) {
    SmallVector<N> direction = times(m.inverse_hessian, gradient);
    for (double& d : direction) d = -d;
    const double slope = dot(direction, gradient);
    if (!(slope < 0)) break;
    double step = 1, low = 0, high = std::numeric_limits<double>::infinity(), value = 0;
    SmallVector<N> next;
    bool is_lower = false;
    for (int trial = 0; trial < kMostTrials; ++trial) {
      next = along(m.at, step, direction);
      value = f(next, next_gradient);
      is_lower = value <= m.value + 1e-4 * step * slope && value < m.value;
      if (!is_lower) {
        high = step;
      } else if (dot(next_gradient, direction) < 0.9 * slope) {
        low = step;
      } else {
        break;
      }
      step = std::isinf(high) ? 2 * low : 0.5 * (low + high);
    }
    if (!is_lower) break;
    const double fall = m.value - value;
    const SmallVector<N> moved = along(next, -1, m.at), turned = along(next_gradient, -1, gradient);
    m.at = next;
    m.value = value;
    gradient = next_gradient;
    const double curvature = dot(moved, turned);
    if (curvature > 0) {
      if (iteration == 0 && m.inverse_hessian == identity<N>()) {
        for (size_t i = 0; i < N; ++i) m.inverse_hessian[i][i] = curvature / dot(turned, turned);
      }
      // H <- (I - s y'/c) H (I - y s'/c) + s s'/c
      const SmallVector<N> hy = times(m.inverse_hessian, turned);
      const double scale = (1 + dot(turned, hy) / curvature) / curvature;
      for (size_t i = 0; i < N; ++i) {
        for (size_t j = 0; j < N; ++j) {
          m.inverse_hessian[i][j] += scale * moved[i] * moved[j] - (hy[i] * moved[j] + moved[i] * hy[j]) / curvature;
        }
      }
    }
    if (fall <= least_fall * m.value) break;
  }
  return m;
}

}  // namespace tokamak

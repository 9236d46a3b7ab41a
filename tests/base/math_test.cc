// The functions of base/math.h against double precision libm.
#include "base/math.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

using namespace tokamak;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// |actual - expected| in units of the last place of a float near `expected`.
double ulps(float actual, double expected) {
  const int exponent = expected == 0 ? -126 : std::max(std::ilogb(expected), -126);
  return std::abs(static_cast<double>(actual) - expected) / std::ldexp(1.0, exponent - 23);
}

// Every 509th float, of either sign, with infinities and NaN among them. They are an array, so that the loop under test
// is compiled to SIMD code as the kernels' loops are.
std::vector<float> sweep() {
  std::vector<float> x = {0.0f, -0.0f, kInf, -kInf, std::nanf("")};
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 509) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  return x;
}

template <class Function>
std::vector<float> map(const std::vector<float>& x, const Function& f) {
  std::vector<float> y(x.size());
  const auto count = static_cast<int64_t>(x.size());
  const float* in = x.data();
  float* out = y.data();
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) out[i] = f(in[i]);
  return y;
}

}  // namespace

TEST_CASE("exp_f32 is within 1.5 units in the last place of libm, over all floats") {
  const std::vector<float> x = sweep();
  const std::vector<float> y = map(x, [](float v) { return exp_f32(v); });
  double worst = 0;
  int64_t wrong_special = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = std::exp(static_cast<double>(x[i]));
    if (std::isnan(x[i])) {
      wrong_special += !std::isnan(y[i]);
    } else if (std::isinf(static_cast<float>(expected))) {
      wrong_special += y[i] != kInf;
    } else if (!std::isnan(y[i])) {
      worst = std::max(worst, ulps(y[i], expected));
    } else {
      ++wrong_special;
    }
  }
  CHECK(wrong_special == 0);
  CHECK(worst < 1.5);
}

TEST_CASE("exp_f32 keeps the cases that softmax relies on") {
  CHECK(exp_f32(0.0f) == 1.0f);
  CHECK(exp_f32(-0.0f) == 1.0f);
  CHECK(exp_f32(-kInf) == 0.0f);
  CHECK(exp_f32(kInf) == kInf);
  CHECK(exp_f32(88.72283f) < kInf);  // the last float whose exponential is finite
  CHECK(exp_f32(88.72284f) == kInf);
  CHECK(exp_f32(-103.0f) == std::exp(-103.0f));  // a denormal
  CHECK(exp_f32(-110.0f) == 0.0f);
  CHECK(std::isnan(exp_f32(std::nanf(""))));
}

TEST_CASE("gelu is the form by tanh, and its gradient the derivative") {
  const double k = std::sqrt(2 / std::acos(-1.0));
  double worst = 0, worst_gradient = 0;
  for (double x = -12; x <= 12; x += 0.00097) {
    const float in = static_cast<float>(x);
    const double v = in, t = std::tanh(k * (v + 0.044715 * v * v * v));
    const double slope = (1 + t) / 2 + v / 2 * (1 - t * t) * k * (1 + 3 * 0.044715 * v * v);
    worst = std::max(worst, std::abs(gelu(in) - v / 2 * (1 + t)));
    worst_gradient = std::max(worst_gradient, std::abs(gelu_gradient(in, sigmoid(gelu_inner(in))) - slope));
  }
  CHECK(worst < 2e-6);                              // at values up to 12
  CHECK(worst_gradient < 3e-6);                     // 1 - s loses digits where s is near 1
  CHECK(std::abs(gelu(1.0f) - 0.8411920f) < 1e-6);  // not the form by erf, 0.8413447
}

TEST_CASE("sigmoid and silu agree with double precision") {
  const std::vector<float> x = sweep();
  const std::vector<float> s = map(x, [](float v) { return sigmoid(v); });
  const std::vector<float> y = map(x, [](float v) { return silu(v); });
  double worst_sigmoid = 0, worst_silu = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!(std::abs(x[i]) < 87.0f)) continue;  // below, e^-x overflows and the result is flushed to 0
    const double v = x[i], expected = 1.0 / (1.0 + std::exp(-v));
    worst_sigmoid = std::max(worst_sigmoid, ulps(s[i], expected));
    worst_silu = std::max(worst_silu, ulps(y[i], v * expected));
  }
  CHECK(worst_sigmoid < 3.0);
  CHECK(worst_silu < 3.0);
  CHECK(sigmoid(kInf) == 1.0f);
  CHECK(sigmoid(-kInf) == 0.0f);
  CHECK(silu(200.0f) == 200.0f);
  CHECK(silu(-200.0f) == 0.0f);
  CHECK(std::isnan(silu(std::nanf(""))));
}

TEST_CASE("silu_gradient is the slope of silu") {
  for (double x = -30.0; x < 30.0; x += 0.037) {
    const auto f = [](double v) { return v / (1.0 + std::exp(-v)); };
    const double h = 1e-5, slope = (f(x + h) - f(x - h)) / (2 * h);
    const auto v = static_cast<float>(x);
    CHECK(silu_gradient(v, sigmoid(v)) == Approx(slope).epsilon(1e-5).margin(1e-6));
  }
}

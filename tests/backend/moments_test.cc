// AdamW with moments in bf16, rounded at random and without bias. A draw depends on the element, not on the call.
#include <numeric>

#include "adamw_state.h"
#include "rounding_words.h"

using namespace tokamak;
using namespace tokamak::testing;

namespace {

double spacing_at(double x) {  // of bf16, which has 8 significant bits
  return std::ldexp(1.0, std::ilogb(std::max(std::abs(x), 0x1p-126)) - 7);
}

// A copy of `state` with its moments in f32.
AdamWState widened(const AdamWState& state) {
  AdamWState wide = state;
  wide.exp_avg = HostTensor(DType::kF32, state.exp_avg.shape(), state.exp_avg.values());
  wide.exp_avg_sq = HostTensor(DType::kF32, state.exp_avg_sq.shape(), state.exp_avg_sq.values());
  return wide;
}

}  // namespace

TEST_CASE("AdamW with bf16 moments is AdamW with f32 moments, which then are rounded by the draws that ops.h states") {
  TestBackend cpu;
  for (const int64_t n : {1, 6, 1003, 3 * 16384 + 77}) {
    for (const StochasticRounding rounding :
         {StochasticRounding{1, 0, 1}, StochasticRounding{uint64_t{1} << 40, 4 * ((int64_t{1} << 34) + 5), 3},
          StochasticRounding{1, 7, int64_t{1} << 33}}) {
      INFO(n << " elements from " << rounding.first);
      const AdamWState narrow(n, DType::kBF16), wide = widened(narrow);
      const HostTensor narrow_updates(DType::kF32, {n}), wide_updates(DType::kF32, {n});
      AdamW args = narrow.args(), expected = wide.args();
      args.rounding = rounding;
      args.updates = narrow_updates;
      expected.updates = wide_updates;
      cpu.ops().adamw(*cpu.stream, args);
      cpu.ops().adamw(*cpu.stream, expected);
      CHECK((narrow.master.bytes() == wide.master.bytes()));  // computed from the moments before rounding
      CHECK((narrow.weights.bytes() == wide.weights.bytes()));
      CHECK((narrow_updates.bytes() == wide_updates.bytes()));
      Values m = wide.exp_avg.values(), v = wide.exp_avg_sq.values();
      for (size_t i = 0; i < m.size(); ++i) {
        const uint32_t word = word_of(rounding, static_cast<int64_t>(i), "adamw");
        m[i] = to_float(round_at_random(static_cast<float>(m[i]), static_cast<uint16_t>(word)));
        v[i] = to_float(round_at_random(static_cast<float>(v[i]), static_cast<uint16_t>(word >> 16)));
      }
      CHECK((narrow.exp_avg.values() == m));
      CHECK((narrow.exp_avg_sq.values() == v));
    }
  }
}

TEST_CASE("AdamW's bf16 moments are within a bf16 spacing of float64's, and without bias") {
  TestBackend cpu;
  const int64_t n = 3 * 16384 + 77;
  AdamWState s(n, DType::kBF16);
  for (int64_t step = 1; step <= 4; ++step) {
    const Values m = s.exp_avg.values(), v = s.exp_avg_sq.values(), master = s.master.values(), g = s.grad.values();
    AdamW args = s.args();
    args.rounding.step = step;
    cpu.ops().adamw(*cpu.stream, args);
    const Values new_m = s.exp_avg.values(), new_v = s.exp_avg_sq.values(), new_master = s.master.values();
    double worst = 0, worst_master = 0, bias_m = 0, bias_v = 0;
    for (size_t i = 0; i < m.size(); ++i) {
      const double exact_m = 0.9 * m[i] + 0.1 * g[i], exact_v = 0.95 * v[i] + 0.05 * g[i] * g[i];
      const double exact_master =
          (1 - 0.003 * 0.1) * master[i] - 0.003 * exact_m / args.bias1 / (std::sqrt(exact_v / args.bias2) + 1e-8);
      // Four roundings to f32, of terms that may cancel. Then less than one spacing of bf16: of the exact value, or of
      // the stored one if the rounding crosses a power of two.
      const double f32_m = 4 * 0x1p-24 * (std::abs(m[i]) + std::abs(g[i])), f32_v = 4 * 0x1p-24 * exact_v;
      const double of_m = std::max(spacing_at(exact_m), spacing_at(new_m[i]));
      const double of_v = std::max(spacing_at(exact_v), spacing_at(new_v[i]));
      worst = std::max(
          {worst, (std::abs(new_m[i] - exact_m) - f32_m) / of_m, (std::abs(new_v[i] - exact_v) - f32_v) / of_v});
      worst_master = std::max(worst_master, std::abs(new_master[i] - exact_master) / (std::abs(master[i]) + 0.03));
      bias_m += (new_m[i] - exact_m) / spacing_at(exact_m);
      bias_v += (new_v[i] - exact_v) / spacing_at(exact_v);
    }
    INFO("step " << step);
    CHECK(worst < 1);
    // The error of the f32 arithmetic alone, relative to the master and ten steps of this learning rate.
    CHECK(worst_master < 1e-6);
    // Each error has mean 0 and, as one of two values a spacing apart, a deviation of at most half a spacing.
    const double five_sigma = 5 * 0.5 * std::sqrt(static_cast<double>(n));
    CHECK(std::abs(bias_m) < five_sigma);
    CHECK(std::abs(bias_v) < five_sigma);
  }
}

TEST_CASE(
    "bf16 moments follow changes that are smaller than half their spacing, where rounding to nearest would stop") {
  TestBackend cpu;
  const int64_t n = 4096, steps = 200;
  AdamWState s(n, DType::kBF16);
  s.exp_avg.set(Values(n, 1));
  s.exp_avg_sq.set(Values(n, 1));
  s.grad.set(Values(n, std::sqrt(2.0)));
  for (int64_t step = 1; step <= steps; ++step) {
    AdamW args = s.args();
    args.beta1 = 0.999;
    args.beta2 = 0.999;
    args.rounding.step = step;
    cpu.ops().adamw(*cpu.stream, args);
  }
  const double kept = std::pow(0.999, steps);
  const auto mean = [](const Values& x) { return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(n); };
  // Between 1 and 2 a spacing is 2^-7: each step adds at most the variance of half of it to an element.
  const double five_sigma = 5 * 0x1p-8 * std::sqrt(static_cast<double>(steps) / static_cast<double>(n));
  CHECK(std::abs(mean(s.exp_avg.values()) - (kept + (1 - kept) * std::sqrt(2.0))) < five_sigma);
  CHECK(std::abs(mean(s.exp_avg_sq.values()) - (kept + (1 - kept) * 2)) < five_sigma);
  CHECK(five_sigma < 0.1 * (1 - kept) * (std::sqrt(2.0) - 1));  // so nearest rounding would fail
}

TEST_CASE("AdamW's draws differ between seeds, steps, elements and the two moments") {
  TestBackend cpu;
  const int64_t n = 4096;
  const auto rounded = [&](const StochasticRounding& rounding) {
    AdamWState s(n, DType::kBF16);
    // Half-way between two bf16, for both moments and all elements: each is a coin of its own.
    s.exp_avg.set(Values(n, 0));
    s.exp_avg_sq.set(Values(n, 0));
    s.grad.set(Values(n, 1));
    AdamW args = s.args();
    args.beta1 = args.beta2 = 1 - (1 + 0x1p-8) / 2;
    args.rounding = rounding;
    cpu.ops().adamw(*cpu.stream, args);
    return std::pair(s.exp_avg.values(), s.exp_avg_sq.values());
  };
  const auto equal = [](const Values& a, const Values& b) {
    int64_t count = 0;
    for (size_t i = 0; i < a.size(); ++i) count += a[i] == b[i];
    return count;
  };
  const auto [m, v] = rounded({1, 0, 1});
  // Independent coins are equal half of the time.
  const double five_sigma = 5 * 0.5 * std::sqrt(static_cast<double>(n));
  const auto independent = [&](int64_t count) { return std::abs(static_cast<double>(count) - 0.5 * n) < five_sigma; };
  CHECK(independent(equal(m, v)));
  CHECK(independent(equal(m, Values(n, m[0]))));
  CHECK(independent(equal(m, rounded({2, 0, 1}).first)));
  CHECK(independent(equal(m, rounded({1, 0, 2}).first)));
  CHECK(independent(equal(v, rounded({1, 0, 2}).second)));
  CHECK(independent(equal(m, rounded({1, 4 * n, 1}).first)));
  CHECK(equal(m, rounded({1, 0, 1}).first) == n);
}

TEST_CASE("bf16 moments of zero stay zero without a gradient, as those of padding") {
  TestBackend cpu;
  AdamWState s(1003, DType::kBF16);
  for (HostTensor* tensor : {&s.master, &s.exp_avg, &s.exp_avg_sq, &s.grad, &s.weights}) tensor->set(Values(1003, 0));
  const std::string zero = s.bytes();
  cpu.ops().adamw(*cpu.stream, s.args());
  CHECK((s.bytes() == zero));
}

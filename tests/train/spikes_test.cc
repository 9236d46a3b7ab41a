// The rule of spikes, by medians and deviations that are known.
#include "train/spikes.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "base/rng.h"

using namespace tokamak;
using Catch::Contains;

namespace {

SpikeOptions options_of(int64_t window, double threshold, int64_t consecutive) {
  SpikeOptions options;
  options.window = window;
  options.threshold = threshold;
  options.consecutive = consecutive;
  return options;
}

StepOutcome outcome(int64_t step, double loss, double norm = 1) {
  return {.step = step, .loss = loss, .grad_norm = norm};
}

// Losses 4.00, 4.01, ... 4.00 + (count - 1) / 100: their median and MAD are known.
OutcomeWindow ramp(const SpikeOptions& options, int64_t count) {
  OutcomeWindow window;
  for (int64_t i = 0; i < count; ++i) see_outcome(options, outcome(i + 1, 4 + 0.01 * double(i)), 10 * i, window);
  return window;
}

}  // namespace

TEST_CASE("a loss is a spike if it is more than the threshold's deviations above the median, by the written formula") {
  const SpikeOptions options = options_of(21, 6, 1);
  const OutcomeWindow window = ramp(options, 21);
  // Median 4.10; distances 0 to 0.10, each but 0 twice: their median is 0.05.
  const double edge = 4.10 + 6 * 1.4826 * 0.05;
  CHECK(spike_limits(options, window).loss == static_cast<float>(edge));
  OutcomeWindow below = window, above = window;
  CHECK_FALSE(see_outcome(options, outcome(22, edge - 1e-6), 210, below));
  const std::optional<Spike> spike = see_outcome(options, outcome(22, edge + 1e-6), 210, above);
  REQUIRE(spike);
  CHECK(spike->step == 22);
  CHECK(spike->sample == 210);
  CHECK(spike->steps == 1);
  CHECK_THAT(spike->text, Contains("loss 4.54") && Contains("6.0 deviations above 4.1") && !Contains("norm"));
  OutcomeWindow low = window;
  CHECK_FALSE(see_outcome(options, outcome(22, 0.1), 210, low));
}

TEST_CASE("a gradient norm is judged by its logarithm") {
  const SpikeOptions options = options_of(16, 6, 1);
  OutcomeWindow window;
  // Logarithms -0.1 and 0.1 in turn: the median is 0 and the deviation 0.14826.
  for (int i = 0; i < 16; ++i) see_outcome(options, outcome(i + 1, 3, std::exp(i % 2 == 0 ? 0.1 : -0.1)), i, window);
  const double edge = std::exp(6 * 1.4826 * 0.1);
  CHECK(spike_limits(options, window).norm == Approx(edge).epsilon(1e-6));
  OutcomeWindow below = window;
  CHECK_FALSE(see_outcome(options, outcome(17, 3, edge * 0.999), 17, below));
  const std::optional<Spike> spike = see_outcome(options, outcome(17, 3, edge * 1.001), 17, window);
  REQUIRE(spike);
  CHECK_THAT(spike->text, Contains("gradient norm 2.4") && !Contains("loss"));
}

TEST_CASE("a spike is reported once, when it is so many steps long, with its first step and sample") {
  const SpikeOptions options = options_of(32, 6, 3);
  OutcomeWindow window = ramp(options, 32);
  CHECK_FALSE(see_outcome(options, outcome(33, 9), 330, window));
  CHECK_FALSE(see_outcome(options, outcome(34, 4.1), 340, window));  // ends it
  CHECK_FALSE(see_outcome(options, outcome(35, 9), 350, window));
  CHECK_FALSE(see_outcome(options, outcome(36, 9), 360, window));
  const std::optional<Spike> spike = see_outcome(options, outcome(37, 9), 370, window);
  REQUIRE(spike);
  CHECK(spike->step == 35);
  CHECK(spike->sample == 350);
  CHECK(spike->steps == 3);
  CHECK_FALSE(see_outcome(options, outcome(38, 9), 380, window));
  CHECK(window.spiking == 4);
}

TEST_CASE("a step that is not judged, inside a spike, is one of its steps") {
  const SpikeOptions options = options_of(32, 6, 2);
  OutcomeWindow window = ramp(options, 32);
  CHECK_FALSE(see_outcome(options, outcome(33, 9), 330, window));
  const std::optional<Spike> spike = see_outcome(options, outcome(35, 9), 350, window);  // 34 was not finite
  REQUIRE(spike);
  CHECK(spike->step == 33);
  CHECK(spike->sample == 330);
  CHECK(spike->steps == 3);
}

TEST_CASE("nothing is a spike before half of the window has been seen, and the window forgets the oldest") {
  const SpikeOptions options = options_of(20, 6, 1);
  OutcomeWindow window = ramp(options, 9);
  CHECK(std::isinf(spike_limits(options, window).loss));
  CHECK_FALSE(see_outcome(options, outcome(10, 100), 90, window));
  CHECK(see_outcome(options, outcome(11, 100), 100, window));
  for (int64_t i = 12; i < 60; ++i) see_outcome(options, outcome(i, 100), 10 * i, window);
  CHECK(window.losses.size() == 20);
  CHECK_FALSE(see_outcome(options, outcome(60, 100), 600, window));  // it has become the usual
}

TEST_CASE("losses that hardly differ do not make every step a spike") {
  const SpikeOptions options = options_of(16, 8, 1);
  OutcomeWindow window;
  for (int64_t i = 1; i <= 16; ++i) see_outcome(options, outcome(i, 2), i, window);
  CHECK_FALSE(see_outcome(options, outcome(17, 2.007), 17, window));
  CHECK(see_outcome(options, outcome(18, 2.02), 18, window));
}

TEST_CASE("a falling loss with normal noise raises no alarm in 100,000 steps", "[large]") {
  const SpikeOptions options;
  const RandomStream random(1, "noise");
  OutcomeWindow window;
  int spikes = 0;
  for (int64_t i = 1; i <= 100000; ++i) {
    const auto noise = [&](int64_t of) { return double(random.normal(static_cast<uint64_t>(2 * i + of))); };
    const double loss = 2 + 8 / std::sqrt(double(i)) + 0.02 * noise(0);
    if (see_outcome(options, outcome(i, loss, std::exp(0.2 * noise(1))), i, window)) ++spikes;
  }
  CHECK(spikes == 0);
}

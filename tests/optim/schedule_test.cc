#include "optim/schedule.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "base/error.h"

using namespace tokamak;

namespace {

Schedule make(DecayType type, TrainingLength warmup, double min_factor, double decay_ratio = 0.1) {
  ScheduleOptions options;
  options.warmup = warmup;
  options.decay_type = type;
  options.min_lr_factor = min_factor;
  options.decay_ratio = decay_ratio;
  return {options, 1.0, 100, 1000};
}

}  // namespace

// Tables written by hand: peak 1, 100 steps.

TEST_CASE("linear: up over the warm-up, straight down to the floor") {
  const Schedule s = make(DecayType::kLinear, TrainingLength::steps(20), 0.2);
  CHECK(s.at(1) == Approx(0.05));
  CHECK(s.at(10) == Approx(0.5));
  CHECK(s.at(20) == Approx(1.0));
  CHECK(s.at(60) == Approx(0.6));
  CHECK(s.at(100) == Approx(0.2));
}

TEST_CASE("cosine: half way between peak and floor in the middle, flat at both ends") {
  const Schedule s = make(DecayType::kCosine, TrainingLength::steps(20), 0.1);
  CHECK(s.at(20) == Approx(1.0));
  CHECK(s.at(40) == Approx(0.1 + 0.9 * (1 + std::sqrt(0.5)) / 2));  // a quarter of the way: cos 45 degrees
  CHECK(s.at(60) == Approx(0.55));
  CHECK(s.at(80) == Approx(0.1 + 0.9 * (1 - std::sqrt(0.5)) / 2));
  CHECK(s.at(100) == Approx(0.1));
}

TEST_CASE("wsd: warm-up, stable, then linearly down over the last share of the run") {
  const Schedule s = make(DecayType::kWsd, TrainingLength::steps(10), 0.0, 0.2);
  CHECK(s.at(5) == Approx(0.5));
  CHECK(s.at(11) == 1.0);
  CHECK(s.at(80) == 1.0);
  CHECK(s.at(90) == Approx(0.5));
  CHECK(s.at(100) == Approx(0.0).margin(1e-15));
  CHECK(s.at(81) < 1.0);
}

TEST_CASE("a warm-up is as long in steps, in tokens and in percent, and none is none") {
  for (const TrainingLength five : {TrainingLength::steps(5), TrainingLength::tokens(4500),  // rounded up
                                    TrainingLength::fraction(0.05)}) {
    const Schedule s = make(DecayType::kCosine, five, 0.1);
    CHECK(s.at(4) == Approx(0.8));
    CHECK(s.at(5) == 1.0);
    CHECK(s.at(6) < 1.0);
  }
  CHECK(make(DecayType::kLinear, TrainingLength::none(), 0.0).at(1) == Approx(0.99));
}

TEST_CASE("a warm-up in seconds or beyond the run is refused, naming the key") {
  CHECK_THROWS_WITH(make(DecayType::kCosine, TrainingLength::seconds(60), 0.1), Catch::Contains("lr_scheduler.warmup"));
  CHECK_THROWS_WITH(make(DecayType::kCosine, TrainingLength::steps(101), 0.1), Catch::Contains("101"));
}

// Each formula in float64, written here a second time: at both ends of each phase, one step beyond them, and between.
#include "optim/schedule.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <numbers>

#include "base/error.h"

using namespace tokamak;
using Catch::Contains;

namespace {

constexpr int64_t kSteps = 100, kBatch = 1000;
constexpr double kPeak = 0.75, kFloor = kPeak * 0.1;  // the default min_lr_factor

RunSteps constant_batch(int64_t tokens = kBatch) {
  return {.total = kSteps, .tokens_after = [tokens](int64_t step) { return step * tokens; }};
}

// A batch of 100 tokens in steps 1 to 40, and of 300 from then on: 4,000 tokens, and 22,000 in all.
int64_t growing(int64_t step) { return 100 * std::min<int64_t>(step, 40) + 300 * std::max<int64_t>(step - 40, 0); }

ScheduleOptions options_of(DecayType type, TrainingLength warmup = TrainingLength::steps(10)) {
  ScheduleOptions options;
  options.decay_type = type;
  options.warmup = warmup;
  return options;
}

ScheduleOptions with_tail(ScheduleOptions options, DecayShape shape, int64_t start = 80) {
  options.decay_start = TrainingLength::steps(double(start));
  options.decay_shape = shape;
  return options;
}

struct Rates {
  RunSteps run;
  Schedule schedule;
  explicit Rates(const ScheduleOptions& options, RunSteps steps = constant_batch())
      : run(std::move(steps)), schedule(options, kPeak, run) {}
  double operator()(int64_t step) const { return schedule.at(step, run.tokens_after(step)); }
};

double relative(double a, double b) { return a == b ? 0 : std::abs(a - b) / std::abs(b); }

void check_formula(const Rates& rates, int64_t first, int64_t last, const std::function<double(double)>& expected) {
  for (int64_t step = first; step <= last; ++step) {
    INFO("step " << step << ": " << rates(step) << ", expected " << expected(double(step)));
    CHECK(relative(rates(step), expected(double(step))) < 1e-15);
  }
}

double half_cosine(double x) { return (1 + std::cos(std::numbers::pi * x)) / 2; }

}  // namespace

TEST_CASE("the warm-up rises by equal steps from 0 to the peak, before every decay_type") {
  for (const std::string& name : enum_names(DecayType{})) {
    INFO(name);
    ScheduleOptions options = options_of(DecayType(&name - enum_names(DecayType{}).data()));
    options.cycle_length = TrainingLength::steps(30);
    check_formula(Rates(options), 1, 10, [](double t) { return kPeak * t / 10; });
  }
}

TEST_CASE("constant stays at the peak; wsd does so until the last decay_ratio of the run, and falls linearly") {
  check_formula(Rates(options_of(DecayType::kConstant)), 11, 100, [](double) { return kPeak; });
  ScheduleOptions wsd = options_of(DecayType::kWsd);
  check_formula(Rates(wsd), 11, 90, [](double) { return kPeak; });
  check_formula(Rates(wsd), 91, 100, [](double t) { return kFloor + (kPeak - kFloor) * (100 - t) / 10; });
  wsd.decay_ratio = 0;
  check_formula(Rates(wsd), 11, 101, [](double) { return kPeak; });
}

TEST_CASE("cosine and linear fall from the peak after the warm-up to the floor") {
  check_formula(Rates(options_of(DecayType::kCosine)), 11, 100,
                [](double t) { return kFloor + (kPeak - kFloor) * half_cosine((t - 10) / 90); });
  check_formula(Rates(options_of(DecayType::kLinear)), 11, 100,
                [](double t) { return kFloor + (kPeak - kFloor) * (100 - t) / 90; });
}

TEST_CASE("inverse_sqrt falls with the root of the tokens since the start, but not below the floor") {
  const ScheduleOptions options = options_of(DecayType::kInverseSqrt, TrainingLength::steps(4));
  check_formula(Rates(options), 5, 100, [](double t) { return kPeak * std::sqrt(4 / t); });
  ScheduleOptions high = options;
  high.min_lr_factor = 0.25;  // sqrt(4 / 64)
  check_formula(Rates(high), 60, 64, [](double t) { return kPeak * std::sqrt(4 / t); });
  check_formula(Rates(high), 64, 100, [](double) { return kPeak / 4; });
}

TEST_CASE("inverse_sqrt without a warm-up is constant over 10,000 steps") {
  const RunSteps run{.total = 40'000, .tokens_after = [](int64_t step) { return step * 7; }};
  const Rates rates(options_of(DecayType::kInverseSqrt, TrainingLength::none()), run);
  check_formula(rates, 1, 10'000, [](double) { return kPeak; });
  check_formula(rates, 39'990, 40'000, [](double t) { return kPeak * std::sqrt(10'000 / t); });
  CHECK(rates(10'001) < kPeak);
}

TEST_CASE("restarts: each cycle is a cosine from its own peak to the floor, longer and lower than the last") {
  ScheduleOptions options = options_of(DecayType::kRestarts);
  options.cycle_length = TrainingLength::steps(12);
  check_formula(Rates(options), 11, 100,
                [](double t) { return kFloor + (kPeak - kFloor) * half_cosine((std::fmod(t - 11, 12) + 1) / 12); });
  options.cycle_length_factor = 2;  // after the warm-up: steps 11 to 22, 23 to 46, 47 to 94, 95 to 190
  options.cycle_peak_factor = 0.5;
  const Rates rates(options);
  const auto cycle = [](double peak, double begin, double length) {
    return [=](double t) { return kFloor + (peak - kFloor) * half_cosine((t - begin) / length); };
  };
  check_formula(rates, 11, 21, cycle(kPeak, 10, 12));
  CHECK(rates(22) == kFloor);
  check_formula(rates, 23, 45, cycle(kPeak / 2, 22, 24));
  CHECK(rates(46) == kFloor);
  check_formula(rates, 47, 93, cycle(kPeak / 4, 46, 48));
  CHECK(rates(94) == kFloor);
  check_formula(rates, 95, 100, cycle(kPeak / 8, 94, 96));
  options.cycle_peak_factor = 0.01;  // below the floor: cycles stay on it
  check_formula(Rates(options), 23, 100, [](double) { return kFloor; });
}

TEST_CASE("a tail has its shape's formula from the base's last rate on, and ends at the floor exactly") {
  struct Tail {
    DecayShape shape;
    std::function<double(double from, double p)> rate;
  };
  const auto sum = [](double from, double left) { return kFloor + (from - kFloor) * left; };
  const Tail tails[] = {
      {DecayShape::kLinear, [&](double from, double p) { return sum(from, 1 - p); }},
      {DecayShape::kSqrt, [&](double from, double p) { return sum(from, 1 - std::sqrt(p)); }},
      {DecayShape::kCosine, [&](double from, double p) { return sum(from, half_cosine(p)); }},
      {DecayShape::kExponential, [](double from, double p) { return from * std::pow(kFloor / from, p); }}};
  for (size_t type = 0; type < enum_names(DecayType{}).size(); ++type) {
    ScheduleOptions base = options_of(DecayType(type));
    base.cycle_length = TrainingLength::steps(90);  // one cycle, in which the tail begins
    ScheduleOptions without = base;
    without.decay_ratio = 0;
    for (const Tail& tail : tails) {
      const Rates rates(with_tail(base, tail.shape)), untouched(without);
      INFO(enum_name(base.decay_type) << " and " << enum_name(tail.shape));
      const double from = untouched(80);
      check_formula(rates, 11, 80, [&](double t) { return untouched(int64_t(t)); });
      check_formula(rates, 81, 99, [&](double t) { return tail.rate(from, (t - 80) / 20); });
      CHECK(rates(100) == kFloor);
      CHECK(rates(101) == kFloor);  // beyond the run
    }
  }
}

TEST_CASE("every shape ends at the floor to the last bit, from wherever it starts") {
  // The product from (floor / from) often rounds to another number than a floor that is a power of two.
  for (size_t shape = 0; shape < enum_names(DecayShape{}).size(); ++shape) {
    for (int64_t start = 10; start < kSteps; ++start) {
      const ScheduleOptions base = options_of(DecayType::kInverseSqrt, TrainingLength::steps(4));
      ScheduleOptions options = with_tail(base, DecayShape(shape), start);
      options.min_lr_factor = 0.125;
      CHECK(Schedule(options, 1.0, constant_batch()).at(kSteps, kSteps * kBatch) == 0.125);
    }
  }
}

TEST_CASE("after the warm-up, a rate never rises, except at restarts") {
  for (size_t type = 0; type < enum_names(DecayType{}).size(); ++type) {
    if (DecayType(type) == DecayType::kRestarts) continue;
    for (size_t shape = 0; shape < enum_names(DecayShape{}).size(); ++shape) {
      ScheduleOptions options = with_tail(options_of(DecayType(type)), DecayShape(shape));
      options.min_lr_factor = 0.5;  // which inverse_sqrt reaches before the tail
      const Rates rates(options);
      for (int64_t step = 11; step <= kSteps; ++step) CHECK(rates(step) <= rates(step - 1));
      CHECK(rates(kSteps) == kPeak / 2);
    }
  }
}

TEST_CASE("any constant batch has the bits of a batch of one token, whose shares are those of steps") {
  const auto run_of = [](int64_t batch) {
    return RunSteps{.total = 1237, .tokens_after = [=](int64_t step) { return step * batch; }};
  };
  for (size_t type = 0; type < enum_names(DecayType{}).size(); ++type) {
    for (const bool tail : {false, true}) {
      ScheduleOptions options = options_of(DecayType(type), TrainingLength::steps(37));
      options.cycle_length = TrainingLength::steps(211);
      if (tail) options = with_tail(options, DecayShape::kSqrt, 1001);
      const Schedule steps(options, 3e-4, run_of(1));
      for (const int64_t batch : {int64_t{768}, int64_t{4'194'304}}) {
        const Schedule tokens(options, 3e-4, run_of(batch));
        for (int64_t step = 1; step <= 1237; ++step) CHECK(tokens.at(step, step * batch) == steps.at(step, step));
      }
    }
  }
}

TEST_CASE("where the batch grows, progress is in tokens, and lengths in tokens are found among the steps") {
  const RunSteps run{.total = kSteps, .tokens_after = growing};
  const Rates linear(options_of(DecayType::kLinear), run);
  check_formula(linear, 11, 100,
                [](double t) { return kFloor + (kPeak - kFloor) * (1 - double(growing(int64_t(t)) - 1000) / 21'000); });
  ScheduleOptions options = options_of(DecayType::kWsd, TrainingLength::tokens(901));  // 10 steps have 1,000
  options.decay_start = TrainingLength::tokens(15'999);                                // 80 steps have 16,000
  const Rates wsd(options, run);
  CHECK(wsd.schedule.warmup_steps() == 10);
  CHECK(wsd.schedule.tail_start() == 80);
  CHECK(length_in_steps(TrainingLength::tokens(1000), "key", run) == 10);
  CHECK(length_in_steps(TrainingLength::tokens(1001), "key", run) == 11);
  CHECK(length_in_steps(TrainingLength::tokens(22'000), "key", run) == 100);
  CHECK(relative(wsd(90), kFloor + (kPeak - kFloor) / 2) < 1e-15);
  const Rates root(options_of(DecayType::kInverseSqrt, TrainingLength::steps(20)), run);
  CHECK(relative(root(100), kPeak * std::sqrt(2'000.0 / 22'000.0)) < 1e-15);
  ScheduleOptions restarts = options_of(DecayType::kRestarts, TrainingLength::steps(40));
  restarts.cycle_length = TrainingLength::steps(20);  // 6,000 tokens
  CHECK(Rates(restarts, run)(60) == kFloor);
  CHECK(relative(Rates(restarts, run)(70), (kPeak + kFloor) / 2) < 1e-15);
}

TEST_CASE("a warm-up is as long in steps, in tokens and in percent, and none is none") {
  for (const TrainingLength five : {TrainingLength::steps(5), TrainingLength::tokens(4500),  // rounded up
                                    TrainingLength::fraction(0.05)}) {
    CHECK(Rates(options_of(DecayType::kCosine, five)).schedule.warmup_steps() == 5);
  }
  const Rates none(options_of(DecayType::kLinear, TrainingLength::none()));
  CHECK(relative(none(1), kFloor + (kPeak - kFloor) * 0.99) < 1e-15);
}

TEST_CASE("a length in seconds or beyond the run is refused, and so is a tail outside of it, naming key and values") {
  const auto refused = [](ScheduleOptions options, const std::string& words) {
    CHECK_THROWS_WITH(Rates(options), Contains(words));
  };
  const DecayType cosine = DecayType::kCosine;
  refused(options_of(cosine, TrainingLength::seconds(60)), "lr_scheduler.warmup: 60 seconds");
  refused(options_of(cosine, TrainingLength::steps(101)),
          "lr_scheduler.warmup is 101 steps, longer than the run of 100");
  refused(options_of(cosine, TrainingLength::tokens(100'001)),
          "lr_scheduler.warmup is 100001 tokens, longer than the run of 100000");
  refused(options_of(cosine, TrainingLength::fraction(1.01)), "lr_scheduler.warmup is 101% of the run");
  refused(with_tail(options_of(cosine), DecayShape::kLinear, 9),
          "lr_scheduler.decay_start is step 9, before the end of lr_scheduler.warmup (10 steps)");
  refused(with_tail(options_of(cosine), DecayShape::kLinear, 100),
          "lr_scheduler.decay_start is step 100, where the run ends");
  CHECK_NOTHROW(Rates(with_tail(options_of(cosine), DecayShape::kLinear, 10)));
  ScheduleOptions restarts = options_of(DecayType::kRestarts);
  refused(restarts, "lr_scheduler.cycle_length is 0 steps");
  restarts.cycle_length = TrainingLength::steps(2);
  const RunSteps endless{.total = int64_t{1} << 50, .tokens_after = [](int64_t step) { return step; }};
  CHECK_THROWS_WITH(Rates(restarts, endless),
                    Contains("lr_scheduler.cycle_length is 2 steps: more than 100000 cycles"));
}

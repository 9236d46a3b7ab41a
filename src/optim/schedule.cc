#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace tokamak {

namespace {

constexpr int64_t kTimescaleWithoutWarmup = 10'000;  // steps
constexpr int64_t kMostCycles = 100'000;

// Quotients of whole tokens below 2^53 have the bits of the quotients of steps, if all steps have equally many.
double share(int64_t tokens, int64_t begin, int64_t end) {
  return begin < end ? std::min(1.0, double(tokens - begin) / double(end - begin)) : 0.0;
}

double half_cosine(double progress) { return 0.5 * (1.0 + std::cos(std::numbers::pi * progress)); }

int64_t first_step_with(double tokens, const RunSteps& run) {
  int64_t low = 0, high = run.total;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (double(run.tokens_after(middle)) < tokens) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

int64_t tail_start_of(const ScheduleOptions& options, int64_t warmup, const RunSteps& run) {
  if (!options.has_tail()) return run.total;
  if (options.decay_start == TrainingLength::none()) {
    const auto decay = static_cast<int64_t>(std::llround(options.decay_ratio * double(run.total)));
    return std::max(warmup, run.total - decay);
  }
  const int64_t start = length_in_steps(options.decay_start, "lr_scheduler.decay_start", run);
  if (start < warmup) {
    fail(Kind::kConfig, str("lr_scheduler.decay_start is step ", start, ", before the end of lr_scheduler.warmup (",
                            warmup, " steps)"));
  }
  if (start == run.total) {
    fail(Kind::kConfig, str("lr_scheduler.decay_start is step ", start, ", where the run ends"));
  }
  return start;
}

}  // namespace

int64_t length_in_steps(const TrainingLength& length, const char* key, const RunSteps& run) {
  const auto within = [&](auto value, int64_t most, const char* unit) {
    if (double(value) > double(most))
      fail(Kind::kConfig, str(key, " is ", value, unit, ", longer than the run of ", most));
  };
  switch (length.unit) {
    case TrainingLength::Unit::kNone:
      return 0;
    case TrainingLength::Unit::kSteps:
      within(std::llround(length.value), run.total, " steps");
      return static_cast<int64_t>(std::llround(length.value));
    case TrainingLength::Unit::kTokens:
      within(std::llround(length.value), run.tokens_after(run.total), " tokens");
      return first_step_with(length.value, run);
    case TrainingLength::Unit::kFraction:
      within(length.value * 100, 100, "% of the run");
      return static_cast<int64_t>(std::llround(length.value * double(run.total)));
    case TrainingLength::Unit::kSeconds:
      break;
  }
  fail(Kind::kConfig,
       str(key, ": ", length.value, " seconds; this is a length in steps, tokens or percent of the run"));
}

Schedule::Schedule(const ScheduleOptions& options, double peak, const RunSteps& run)
    : type_(options.decay_type), shape_(options.decay_shape), peak_(peak), floor_(peak * options.min_lr_factor) {
  const auto mark = [&](int64_t step) { return Mark{step, run.tokens_after(step)}; };
  warmup_ = mark(length_in_steps(options.warmup, "lr_scheduler.warmup", run));
  tail_ = mark(tail_start_of(options, warmup_.step, run));
  end_ = mark(run.total);
  if (type_ == DecayType::kInverseSqrt) {
    timescale_ = double(warmup_.step > 0 ? warmup_.tokens : run.tokens_after(kTimescaleWithoutWarmup));
  }
  if (type_ == DecayType::kRestarts) cycles_ = cycles_of(options, run);
}

std::vector<Schedule::Cycle> Schedule::cycles_of(const ScheduleOptions& options, const RunSteps& run) const {
  const int64_t steps = length_in_steps(options.cycle_length, "lr_scheduler.cycle_length", run);
  if (steps < 1)
    fail(Kind::kConfig, str("lr_scheduler.cycle_length is ", steps, " steps; decay_type restarts needs 1"));
  std::vector<Cycle> cycles;
  Cycle next{double(warmup_.tokens), double(run.tokens_after(warmup_.step + steps) - warmup_.tokens), peak_};
  do {
    if (std::ssize(cycles) == kMostCycles) {
      fail(Kind::kConfig, str("lr_scheduler.cycle_length is ", steps, " steps: more than ", kMostCycles, " cycles"));
    }
    cycles.push_back(next);
    next.begin += next.length;
    next.length *= options.cycle_length_factor;
    next.peak = std::max(floor_, next.peak * options.cycle_peak_factor);
  } while (next.begin < double(end_.tokens));
  return cycles;
}

double Schedule::restarted(int64_t tokens) const {
  // The step that ends a cycle has its lowest learning rate.
  const auto after = std::partition_point(cycles_.begin() + 1, cycles_.end(),
                                          [&](const Cycle& cycle) { return cycle.begin < double(tokens); });
  const Cycle& cycle = *(after - 1);
  return towards_floor(cycle.peak, half_cosine(std::min(1.0, (double(tokens) - cycle.begin) / cycle.length)));
}

double Schedule::base(int64_t tokens) const {
  switch (type_) {
    case DecayType::kConstant:
    case DecayType::kWsd:
      return peak_;
    case DecayType::kCosine:
      return towards_floor(peak_, half_cosine(share(tokens, warmup_.tokens, end_.tokens)));
    case DecayType::kLinear:
      return towards_floor(peak_, 1.0 - share(tokens, warmup_.tokens, end_.tokens));
    case DecayType::kInverseSqrt:
      return std::max(floor_, peak_ * std::sqrt(timescale_ / std::max(double(tokens), timescale_)));
    case DecayType::kRestarts:
      return restarted(tokens);
  }
  TOKAMAK_UNREACHABLE();
}

double Schedule::tail(double progress) const {
  if (progress >= 1) return floor_;  // exactly, whatever the shape
  const double from = base(tail_.tokens);
  switch (shape_) {
    case DecayShape::kLinear:
      return towards_floor(from, 1.0 - progress);
    case DecayShape::kSqrt:
      return towards_floor(from, 1.0 - std::sqrt(progress));
    case DecayShape::kCosine:
      return towards_floor(from, half_cosine(progress));
    case DecayShape::kExponential:
      return from * std::pow(floor_ / from, progress);
  }
  TOKAMAK_UNREACHABLE();
}

double Schedule::at(int64_t step, int64_t tokens) const {
  if (step <= warmup_.step) return peak_ * double(step) / double(warmup_.step);
  if (step <= tail_.step) return base(tokens);
  return tail(share(tokens, tail_.tokens, end_.tokens));
}

}  // namespace tokamak

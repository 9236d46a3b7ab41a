#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace tokamak {

int64_t length_in_steps(const TrainingLength& length, const char* key, int64_t total_steps, int64_t tokens_per_step) {
  switch (length.unit) {
    case TrainingLength::Unit::kNone:
      return 0;
    case TrainingLength::Unit::kSteps:
      return static_cast<int64_t>(std::llround(length.value));
    case TrainingLength::Unit::kTokens:
      return static_cast<int64_t>(std::ceil(length.value / double(tokens_per_step)));
    case TrainingLength::Unit::kFraction:
      return static_cast<int64_t>(std::llround(length.value * double(total_steps)));
    case TrainingLength::Unit::kSeconds:
      break;
  }
  fail(Kind::kConfig,
       str(key, ": ", length.value, " seconds; this is a length in steps, tokens or percent of the run"));
}

Schedule::Schedule(const ScheduleOptions& options, double peak, int64_t total_steps, int64_t tokens_per_step)
    : decay_type_(options.decay_type),
      peak_(peak),
      floor_(peak * options.min_lr_factor),
      total_steps_(total_steps),
      warmup_steps_(length_in_steps(options.warmup, "lr_scheduler.warmup", total_steps, tokens_per_step)),
      decay_start_(warmup_steps_) {
  if (warmup_steps_ > total_steps) {
    fail(Kind::kConfig, str("lr_scheduler.warmup is ", warmup_steps_, " steps, longer than the run of ", total_steps));
  }
  if (decay_type_ == DecayType::kWsd) {
    const auto decay = std::llround(options.decay_ratio * double(total_steps));
    decay_start_ = std::max(warmup_steps_, total_steps - static_cast<int64_t>(decay));
  }
}

double Schedule::at(int64_t step) const {
  if (step <= warmup_steps_) return peak_ * double(step) / double(warmup_steps_);
  if (step <= decay_start_ || decay_start_ >= total_steps_) return peak_;
  const double progress = std::min(1.0, double(step - decay_start_) / double(total_steps_ - decay_start_));
  const double left =
      decay_type_ == DecayType::kCosine ? 0.5 * (1.0 + std::cos(std::numbers::pi * progress)) : 1.0 - progress;
  return floor_ + (peak_ - floor_) * left;
}

}  // namespace tokamak

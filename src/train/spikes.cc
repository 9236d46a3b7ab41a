#include "train/spikes.h"

#include <cmath>

#include "base/median.h"
#include "base/strings.h"

namespace tokamak {

namespace {

constexpr double kMadOfNormal = 1.4826;
constexpr double kLeastDeviation = 1e-3;  // where outcomes hardly differ: of a loss about 2, and of a norm 0.1 %

struct Usual {
  double median = 0, deviation = 0;
};

Usual usual(const std::vector<double>& values) {
  const double median = median_of(values);
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - median));
  return {median, std::max(kLeastDeviation, kMadOfNormal * median_of(std::move(distances)))};
}

// As they were before the outcome that is judged; nothing if they are too few.
struct UsualOutcomes {
  Usual loss, log_norm;
};
std::optional<UsualOutcomes> usual_outcomes(const SpikeOptions& options, const OutcomeWindow& window) {
  if (2 * std::ssize(window.losses) < options.window) return std::nullopt;
  return UsualOutcomes{usual(window.losses), usual(window.log_norms)};
}

void push(std::vector<double>& values, double value, int64_t most) {
  values.push_back(value);
  const auto more = std::max<int64_t>(0, std::ssize(values) - most);  // several if the window has become shorter
  values.erase(values.begin(), values.begin() + more);
}

}  // namespace

std::optional<Spike> see_outcome(const SpikeOptions& options, const StepOutcome& outcome, int64_t first_sample,
                                 OutcomeWindow& window) {
  const std::optional<UsualOutcomes> before = usual_outcomes(options, window);
  // A norm of 0 has no logarithm; it is no spike.
  const double log_norm = std::log(std::max(outcome.grad_norm, 1e-30));
  std::vector<std::string> texts;
  if (before) {
    const auto judge = [&](const char* name, double value, double shown, const Usual& of, double median) {
      const double z = (value - of.median) / of.deviation;
      if (z > options.threshold)
        texts.push_back(str(name, " ", shown, " is ", fixed(z, 1), " deviations above ", median));
    };
    judge("loss", outcome.loss, outcome.loss, before->loss, before->loss.median);
    judge("gradient norm", log_norm, outcome.grad_norm, before->log_norm, std::exp(before->log_norm.median));
  }
  push(window.losses, outcome.loss, options.window);
  push(window.log_norms, log_norm, options.window);
  if (texts.empty()) {
    window.spiking = 0;
  } else if (window.spiking++ == 0) {
    window.spike_step = outcome.step;
    window.spike_sample = first_sample;
  }
  if (window.spiking != options.consecutive) return std::nullopt;
  return Spike{window.spike_step, window.spike_sample, outcome.step - window.spike_step + 1, join(texts, ", ")};
}

bool may_go_back(const SpikeOptions& options, const OutcomeWindow& window) {
  return options.action == SpikeAction::kRollback && 0 < window.spiking && window.spiking < options.consecutive;
}

StepLimits spike_limits(const SpikeOptions& options, const OutcomeWindow& window) {
  const std::optional<UsualOutcomes> before = usual_outcomes(options, window);
  if (!before) return {};
  const auto limit = [&](const Usual& of) { return of.median + options.threshold * of.deviation; };
  return {.loss = static_cast<float>(limit(before->loss)),
          .norm = static_cast<float>(std::exp(limit(before->log_norm)))};
}

}  // namespace tokamak

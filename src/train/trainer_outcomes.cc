// The part of the loop that reads what came of a step: its records, and what follows if it was bad or its loss spikes.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "comm/collective_error.h"
#include "train/left_out.h"
#include "train/non_finite_trace.h"
#include "train/tensor_records.h"
#include "train/trainer.h"

namespace tokamak {

namespace {

constexpr int64_t kMostTraces = 8;         // of values that are not finite, in a stage: each takes some ten steps' time
constexpr int64_t kMoreStepsLeftOut = 32;  // than those of the spike: what damaged the loss may go on

}  // namespace

Trainer::Gradients Trainer::read_outcome() {
  Gradients gradients = Gradients::kKept;
  if (reader_->pending()) {
    StepOutcome outcome = reader_->take();
    checks_->see_outcome(outcome.step);
    const bool zeroes = !outcome.is_finite() && config().resilience.non_finite == NonFiniteAction::kZero;
    if (zeroes) {
      see_bad_step(outcome);
      outcome = repeat_with_zeros(outcome);
      gradients = Gradients::kLost;
    }
    records().monitor().step(outcome, waited_ + loader_->wait_seconds());
    report_statistics(outcome.step);
    if (!outcome.is_finite() && !zeroes) gradients = see_bad_step(outcome);
    was_finite_ = outcome.is_finite() && !zeroes;
    bad_steps_.see(outcome);
    if (outcome.is_finite()) see_spike(outcome);
  }
  report_stragglers();
  return gradients;
}

// The update was skipped, so the state is the one before the step.
Trainer::Gradients Trainer::see_bad_step(const StepOutcome& outcome) {
  if (comm_.rank() == 0) {
    log::warning("step ", outcome.step, ": loss ", outcome.loss, ", gradient norm ", outcome.grad_norm,
                 ": not finite, the update is skipped");
  }
  if (!was_finite_ || traces_ == kMostTraces) return Gradients::kKept;
  const RunEvent event = trace(outcome.step, last_first_sample_);
  if (comm_.rank() == 0 && event.texts.empty()) {
    log::warning("the first time, a processor, its memory or a transfer was at fault");
  }
  if (++traces_ == kMostTraces && comm_.rank() == 0) log::warning("no more steps are traced in this stage");
  if (config().resilience.non_finite != NonFiniteAction::kStop) return Gradients::kLost;
  throw SharedError(Kind::kNumerics, event.detail, bad_steps_.advice(outcome.step));
}

// Makes the update that was skipped, from the same state and samples, with zeros for the gradient's values that are not
// finite. If the loss is not finite, it is skipped again.
StepOutcome Trainer::repeat_with_zeros(const StepOutcome& skipped) {
  StepOutcome outcome;
  {
    const OffTheClock off(records().clock());
    Loader again(open_.data->train, loader_options(last_first_sample_));
    tokamak::compute_gradients(engine(), batches_of(again, progress()), again.micro_batches_per_step());
    StepSettings settings = settings_of(skipped.step);
    settings.non_finite = NonFiniteGradients::kZeroed;
    settings.limits = limits();
    settings.statistics = statistics_of(skipped.step);
    if (settings.statistics != nullptr) settings.statistics->forget();  // those of the update that was skipped
    update_weights(engine(), settings);
    reader_->fetch(skipped.step, skipped.lr, skipped.attended);
    outcome = reader_->take();
    checks_->see_outcome(outcome.step);
  }
  outcome.time = now_seconds();
  outcome.zeroed = true;
  if (comm_.rank() != 0) return outcome;
  if (outcome.applied) {
    log::warning("step ", outcome.step, ": updated, with zeros for what is not finite in the gradient");
  } else {
    log::warning("step ", outcome.step, ": the loss is not finite, so zeros in the gradient do not help");
  }
  return outcome;
}

void Trainer::see_spike(const StepOutcome& outcome) {
  const SpikeOptions& options = config().resilience.spike;
  if (options.action == SpikeAction::kNone) {
    state_.outcomes = {};  // a later start that looks begins with its own steps
    return;
  }
  const std::optional<Spike> spike = see_outcome(options, outcome, last_first_sample_, state_.outcomes);
  if (!outcome.applied && comm_.rank() == 0) {
    log::warning("step ", outcome.step, ": loss ", outcome.loss, ", gradient norm ", outcome.grad_norm,
                 ": a spike, the update is skipped");
  }
  if (!spike) return;
  const std::string text = str(spike->steps, " step(s) from step ", spike->step, " on: ", spike->text);
  if (comm_.rank() == 0) log::warning("spike, ", text);
  records().monitor().event("spike", outcome.step, text, {count_value("spike/first_step", spike->step)});
  if (options.action != SpikeAction::kRollback) return;
  if (checkpoints_.has_before(spike->step)) throw *spike;
  if (comm_.rank() == 0) log::warning("there is no checkpoint before it to go back to; the run goes on");
}

// Goes back to a checkpoint before the spike, and leaves out samples from its first step on. The state records this, so
// that each later start does the same.
void Trainer::roll_back(const Spike& spike) {
  const SpikeOptions& options = config().resilience.spike;
  const int64_t of_step = open_.row().sequences(), steps = spike.steps + kMoreStepsLeftOut;
  // Whole steps, so that ranges begin where steps do, whatever other ranges are left out.
  const int64_t whole = options.skip_samples.is_auto() ? steps : (options.skip_samples.value + of_step - 1) / of_step;
  const int64_t samples = whole * of_step;
  LeftOut range{.step = spike.step, .first_sample = spike.sample, .samples = samples, .reason = spike.text};
  if (std::ssize(state_.left_out) >= options.max_rollbacks) {
    std::vector<std::string> tried;
    for (const LeftOut& one : state_.left_out) tried.push_back(one.text());
    throw SharedError(Kind::kNumerics,
                      str("a spike at step ", spike.step, ": ", spike.text, "; ", tried.size(),
                          " rollbacks (resilience.spike.max_rollbacks) left out ", join(tried, "; ")),
                      bad_steps_.advice(spike.step));
  }
  std::vector<LeftOut> left_out = state_.left_out;
  RunState state = checkpoints_.load_before(spike.step);
  left_out.push_back(std::move(range));
  state.left_out = std::move(left_out);
  const LeftOutSamples left_out_here(state.left_out, open_.row());
  state.next_sample = left_out_here.past(state.next_sample);
  if (comm_.rank() == 0) {
    log::warning("rolled back to step ", state.step, "; left out: ", state.left_out.back().text());
    const std::string exceeded = open_.data->exceeded_epochs(config(), left_out_here.count());
    if (!exceeded.empty()) log::warning("with what is left out, ", exceeded, "; the run goes on");
  }
  records().event_at(state.step, {"rollback", state.left_out.back().text(), {}},
                     {count_value("rollback/from_step", state_.step), count_value("rollback/samples", samples)});
  go_to(state);
  saves_soon_ = true;
}

RunEvent Trainer::trace(int64_t step, int64_t first_sample) {
  const OffTheClock off(records().clock());
  RunEvent event = trace_non_finite(
      comm_, engine(), open_.data->train,
      {.step = step, .samples = loader_options(first_sample), .max_grad_norm = config().training.max_grad_norm},
      progress());
  if (comm_.rank() == 0) log::warning("traced ", event.detail);
  records().event_at(step, event, {{"time/trace", off.seconds()}});
  return event;
}

RunEnd Trainer::trace_next_step() {
  read_outcome();
  trace(state_.step + 1, state_.next_sample);
  return RunEnd::kDone;
}

StepLimits Trainer::limits() const {
  const SpikeOptions& options = config().resilience.spike;
  return options.action == SpikeAction::kSkip ? spike_limits(options, state_.outcomes) : StepLimits();
}

std::string Trainer::doubt() const {
  if (bad_steps_.in_a_row() > 0) return str("the last ", bad_steps_.in_a_row(), " step(s) were bad");
  if (!may_go_back(config().resilience.spike, state_.outcomes)) return "";
  return str("the last ", state_.outcomes.spiking, " step(s) spike; the next ones decide whether the run goes back");
}

bool Trainer::statistics_due(int64_t interval, int64_t step) const {
  return interval > 0 && (step % interval == 0 || step == open_.table.total_steps());
}

ShardStatistics* Trainer::statistics_of(int64_t step) {
  return statistics_due(config().metrics.tensor_statistics, step) ? engine().statistics() : nullptr;
}

ActivationStatistics* Trainer::activations_of(int64_t step) {
  const int64_t interval = config().metrics.activation_statistics.interval;
  return statistics_due(interval, step) ? engine().activation_statistics() : nullptr;
}

void Trainer::report_statistics(int64_t step) {
  std::vector<TensorRecord> tensors;
  double seconds = 0;
  if (ShardStatistics* statistics = statistics_of(step)) {
    const ShardStatistics::Result result = statistics->take();
    append_records(result.weights, tensors);
    seconds += result.seconds;
  }
  if (ActivationStatistics* activations = activations_of(step)) {
    const ActivationStatistics::Result result = activations->take();
    append_records(result.activations, tensors);
    seconds += result.seconds;
  }
  if (!tensors.empty() && records().reports()) records().monitor().tensors(step, std::move(tensors), seconds);
}

}  // namespace tokamak

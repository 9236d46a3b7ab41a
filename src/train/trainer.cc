// The loop of a training run; how one starts is in trainer_setup.cc.
#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "comm/collective_error.h"
#include "train/average_updates.h"
#include "train/non_finite_trace.h"
#include "train/tensor_records.h"
#include "train/validation.h"

namespace tokamak {

namespace {

constexpr int64_t kTimeIsOver = 1000;  // beyond the numbers of signals
constexpr int64_t kMostTraces = 8;     // of values that are not finite, in a start: each takes some ten steps' time

constexpr int64_t kMoreStepsLeftOut = 32;  // than those of the spike: what damaged the loss may go on

std::string text_of(const LeftOut& range) {
  return str(range.samples, " samples from sample ", range.first_sample, " on, first read in step ", range.step, " (",
             range.reason, ")");
}

// `planned`: of the row that needs most, since the peak is the program's.
void report_memory(int64_t planned, const Device& device) {
  const int64_t peak = device.peak_bytes();
  if (peak == 0) {  // without a free descriptor /proc cannot be read
    log::info("memory: planned ", human_bytes(planned), "; the system does not say the peak");
    return;
  }
  log::info("memory: planned ", human_bytes(planned), ", peak ", human_bytes(peak), " (",
            fixed(100.0 * static_cast<double>(peak) / static_cast<double>(planned), 1), "% of the plan)");
}

}  // namespace

RunEnd Trainer::run() {
  RunEnd end = RunEnd::kDone;
  const bool was_done = records().was_done();
  records().running();
  records().or_record_end([&] {
    try {
      end = train(was_done);
    } catch (const SharedError&) {
      checkpoints_.finish();  // its checkpoint is still good, and all ranks are here
      throw;
    }
  });
  if (end == RunEnd::kDone) records().end(RunStatus::State::kDone, "done", 0);
  if (end == RunEnd::kStopped) records().end(RunStatus::State::kStopped, "stopped", static_cast<int>(Kind::kStopped));
  return end;
}

RunEnd Trainer::train(bool was_done) {
  const PhaseScope training(progress(), Phase::kStep);
  if (was_done && comm_.rank() == 0) {
    const RunConfig& all = open_.config;
    const std::string limit = !all.stages.empty()          ? "a longer stage or another one"
                              : all.training.max_steps > 0 ? str("training.max_steps above ", state_.step)
                                                           : str("training.max_tokens above ", state_.tokens);
    log::info("nothing to train: the run is done at step ", state_.step, "; ", limit, " trains on");
  }
  if (std::exchange(state_.owes_evaluation, false) && !was_done) evaluate_if_due();
  while (true) {
    try {
      return train_on();
    } catch (const Spike& spike) {
      roll_back(spike);
    }
  }
}

RunEnd Trainer::train_on() {
  while (!row_is_done()) {
    if (state_.step + 1 == options_.trace_step) {
      read_outcome();
      trace(options_.trace_step, state_.next_sample);
      return RunEnd::kDone;
    }
    if (should_stop()) {
      open_.checkpointer.stop_reading();
      save_last();
      return RunEnd::kStopped;
    }
    step();
    checkpoints_.take_snapshot_memory();
    evaluate_if_due();
    if (!row_is_done()) save_if_due();
  }
  save_last();
  if (state_.owes_evaluation) return RunEnd::kStopped;
  open_.most_planned = std::max(open_.most_planned, run_.planned_device_bytes());
  report_memory(open_.most_planned, *engine().backend().device);
  if (open_.is_last_row()) return RunEnd::kDone;
  return should_stop() ? RunEnd::kStopped : RunEnd::kNextRow;
}

void Trainer::step() {
  const int64_t step = state_.step + 1;
  const StepScope scope(progress(), step);
  const RunTable::Row row = open_.table.at(step);
  trace_.begin(step);
  const double attended = compute_gradients(step);
  StepSettings settings = settings_of(step);
  settings.limits = limits();
  settings.statistics = statistics_due(step) ? engine().statistics() : nullptr;
  settings.averages = average_weights(config().averages, open_.table, step, state_);
  update_weights(engine(), settings);
  reader_->fetch(step, row.lr, attended);
  trace_.end(step);
  state_.step = step;
  state_.tokens += row.stage->options.global_batch_tokens;
  last_first_sample_ = state_.next_sample;
  state_.next_sample = past_left_out(state_, last_first_sample_ + row.stage->sequences());
  if (state_.next_sample != last_first_sample_ + row.stage->sequences()) open_loader();
  records().at_step(step);
}

StepSettings Trainer::settings_of(int64_t step) {
  return {.t = step - state_.optimizer_start,
          .lr = open_.table.at(step).lr,
          .max_grad_norm = config().training.max_grad_norm,
          .guard = checks_->guard()};
}

double Trainer::compute_gradients(int64_t step) {
  const LoaderOptions here = loader_options(state_.next_sample);
  const int64_t micro_batches = loader_->micro_batches_per_step();
  const double attended = checks_->recompute_due(step)
                              ? checks_->gradients(step, *loader_, here)
                              : tokamak::compute_gradients(engine(), batches_of(*loader_, progress()), micro_batches);
  // Now, so that the device never waits for the host, and that the state is still the one after the step before.
  if (read_outcome() == Gradients::kKept) return attended;
  Loader again(open_.data->train, here);
  return tokamak::compute_gradients(engine(), batches_of(again, progress()), micro_batches);
}

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
    records().monitor().step(outcome, loader_->wait_seconds());
    if (statistics_due(outcome.step)) report_statistics(outcome.step);
    if (!outcome.is_finite() && !zeroes) gradients = see_bad_step(outcome);
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
  if (bad_steps_.in_a_row() > 0 || traces_ == kMostTraces) return Gradients::kKept;
  const RunEvent event = trace(outcome.step, last_first_sample_);
  if (comm_.rank() == 0 && event.texts.empty()) {
    log::warning("the first time, a processor, its memory or a transfer was at fault");
  }
  if (++traces_ == kMostTraces && comm_.rank() == 0) log::warning("no more steps are traced in this start");
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
  if (options.action == SpikeAction::kNone) return;
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
  const int64_t samples = options.skip_samples.is_auto() ? steps * of_step : options.skip_samples.value;
  LeftOut range{.step = spike.step, .first_sample = spike.sample, .samples = samples, .reason = spike.text};
  if (std::ssize(state_.left_out) >= options.max_rollbacks) {
    std::vector<std::string> tried;
    for (const LeftOut& one : state_.left_out) tried.push_back(text_of(one));
    throw SharedError(Kind::kNumerics,
                      str("a spike at step ", spike.step, ": ", spike.text, "; ", tried.size(),
                          " rollbacks (resilience.spike.max_rollbacks) left out ", join(tried, "; ")),
                      bad_steps_.advice(spike.step));
  }
  std::vector<LeftOut> left_out = state_.left_out;
  RunState state = checkpoints_.load_before(spike.step);
  left_out.push_back(std::move(range));
  state.left_out = std::move(left_out);
  state.next_sample = past_left_out(state, state.next_sample);
  if (comm_.rank() == 0) {
    log::warning("rolled back to step ", state.step, "; left out: ", text_of(state.left_out.back()));
  }
  records().event_at(state.step, {"rollback", text_of(state.left_out.back()), {}},
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
  records().event(event, {{"time/trace", off.seconds()}});
  return event;
}

StepLimits Trainer::limits() const {
  const SpikeOptions& options = config().resilience.spike;
  return options.action == SpikeAction::kSkip ? spike_limits(options, state_.outcomes) : StepLimits();
}

// `next`, or if samples from there on are left out, the first one after them.
int64_t Trainer::past_left_out(const RunState& state, int64_t next) const {
  for (bool moves = true; std::exchange(moves, false);) {
    for (const LeftOut& range : state.left_out) {
      if (open_.row().contains(range.step) && range.first_sample == next) {
        next += range.samples;
        moves = true;
      }
    }
  }
  return next;
}

bool Trainer::statistics_due(int64_t step) const {
  const int64_t interval = config().metrics.tensor_statistics;
  return interval > 0 && (step % interval == 0 || step == open_.table.total_steps());
}

void Trainer::report_statistics(int64_t step) {
  const ShardStatistics::Result result = engine().statistics()->take();
  if (records().reports()) records().monitor().tensors(step, tensor_records(result.weights), result.seconds);
}

// Writes them to the records, where a report finds them. The watchdog has logged them.
void Trainer::report_stragglers() {
  if (!options_.stragglers) return;
  for (const Straggler& one : options_.stragglers()) {
    records().monitor().event("straggler", state_.step, one.name,
                              {{"seconds", one.seconds}, {"median_seconds", one.median}});
  }
}

bool Trainer::should_stop() {
  const int64_t reason = stop_reason();
  const bool at_limit = options_.stop_at_step > 0 && state_.step >= options_.stop_at_step;
  if (reason == 0 && !at_limit) return false;
  read_outcome();
  const std::string text = reason == kTimeIsOver ? "run.stop_after"
                           : reason != 0         ? str("signal ", reason)
                                                 : str("--stop-at-step ", options_.stop_at_step);
  if (comm_.rank() == 0) log::info(text, ": stopping after step ", state_.step, " of ", open_.table.total_steps());
  records().monitor().event("stop", state_.step, text);
  return true;
}

int64_t Trainer::stop_reason() {
  int64_t own = stop_.received();
  const Duration limit = config().run.stop_after;
  if (own == 0 && !limit.is_none() && process_age() >= limit.seconds) own = kTimeIsOver;
  return comm_.max(own);
}

void Trainer::stop_between() {
  if (stop_reason() != 0) throw StopRequested();
}

void Trainer::evaluate_if_due() {
  try {
    if (due(config().training.validation_interval)) validate();
    if (due(config().training.evals_interval)) take_evals();
    if (due(config().training.samples.interval)) take_samples();
  } catch (const StopRequested&) {
    if (comm_.rank() == 0) {
      log::warning("the validation, evaluation or samples of step ", state_.step,
                   " are cut short by a stop; the next start makes them again");
    }
    state_.owes_evaluation = true;
  }
}

void Trainer::validate() {
  if (!open_.data->validation) return;
  read_outcome();
  const PhaseScope phase(progress(), Phase::kValidation);
  const OffTheClock off(records().clock());
  const SampleSource& held_out = *open_.data->validation;
  const BatchShape& shape = run_.planned.shape;
  const auto measure = [&] {
    return mean_loss(engine(), held_out,
                     {.sequences = validation_sequences(config(), shape, held_out),
                      .micro_batch = shape.micro_batch,
                      .document_masking = config().data.document_masking},
                     [this] { stop_between(); });
  };
  const double loss = measure();
  std::vector<NamedValue> of_averages;
  for (size_t i = 0; i < config().averages.size(); ++i) {
    const std::string& name = config().averages[i].name;
    if (state_.find_average(name) == nullptr) continue;
    engine().averages().with(i, engine().compute(), [&] { of_averages.push_back({name, measure()}); });
  }
  records().monitor().validation(state_.step, loss, open_.data->bits_per_byte(loss), of_averages, off.seconds());
}

void Trainer::take_evals() {
  if (config().training.evals.empty()) return;
  read_outcome();
  const PhaseScope phase(progress(), Phase::kEvals);
  const OffTheClock off(records().clock());
  const std::vector<NamedValue> results = options_.evals(engine(), [this] { stop_between(); });
  records().monitor().evals(state_.step, results, off.seconds());
}

void Trainer::take_samples() {
  if (options_.sampler == nullptr) return;
  read_outcome();
  const PhaseScope phase(progress(), Phase::kSamples);
  const OffTheClock off(records().clock());
  Sampler::Result result = options_.sampler->run(engine(), [this] { stop_between(); });
  if (!result.problem.empty() && comm_.rank() == 0) {
    log::warning("the samples of step ", state_.step, " end early: ", result.problem);
  }
  records().monitor().samples(state_.step, std::move(result.samples), off.seconds());
}

void Trainer::save_if_due() {
  checkpoints_.advance();
  const bool is_due = checkpoints_.due(state_);
  if (!std::exchange(saves_soon_, false) && !is_due) return;
  read_outcome();
  checkpoints_.save(state_, bad_steps_.in_a_row());
}

void Trainer::save_last() {
  const PhaseScope phase(progress(), Phase::kStop);
  read_outcome();
  checkpoints_.save_last(state_, bad_steps_.in_a_row());
}

}  // namespace tokamak

// The loop of a training run; how one starts is in trainer_setup.cc.
#include "train/trainer.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/process.h"
#include "comm/collective_error.h"
#include "train/average_updates.h"
#include "train/left_out.h"
#include "train/validation.h"

namespace tokamak {

namespace {

constexpr int64_t kTimeIsOver = 1000;  // beyond the numbers of signals
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
      end = train_through_spikes(was_done);
    } catch (const SharedError&) {
      checkpoints_.finish();  // its checkpoint is still good, and all ranks are here
      throw;
    }
  });
  if (end == RunEnd::kDone) records().end(RunStatus::State::kDone, "done", 0);
  if (end == RunEnd::kStopped) records().end(RunStatus::State::kStopped, "stopped", static_cast<int>(Kind::kStopped));
  return end;
}

RunEnd Trainer::train_through_spikes(bool was_done) {
  while (true) {
    try {
      return train(was_done);
    } catch (const Spike& spike) {
      roll_back(spike);
      was_done = false;
    }
  }
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
  while (!row_is_done()) {
    if (state_.step + 1 == options_.trace_step) return trace_next_step();
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
  settings.statistics = statistics_of(step);
  settings.averages = average_weights(config().averages, open_.table, step, state_);
  update_weights(engine(), settings);
  reader_->fetch(step, row.lr, attended);
  trace_.end(step);
  state_.step = step;
  state_.tokens += row.stage->options.global_batch_tokens;
  last_first_sample_ = state_.next_sample;
  const int64_t next = last_first_sample_ + row.stage->sequences();
  state_.next_sample = LeftOutSamples(state_.left_out, open_.row()).past(next);
  if (state_.next_sample != next) open_loader();
  records().at_step(step);
}

StepSettings Trainer::settings_of(int64_t step) {
  return {.t = step - state_.optimizer_start,
          .lr = open_.table.at(step).lr,
          .max_grad_norm = config().training.max_grad_norm,
          .max_unit_grad_norm = config().training.max_unit_grad_norm,
          .guard = checks_->guard()};
}

double Trainer::compute_gradients(int64_t step) {
  const LoaderOptions here = loader_options(state_.next_sample);
  const int64_t micro_batches = loader_->micro_batches_per_step();
  ActivationStatistics* const activations = activations_of(step);
  const auto watched = [&](const auto& compute) {
    if (activations != nullptr) activations->begin(engine().compute());
    engine().model().watch(activations);
    const double attended = compute();
    engine().model().watch(nullptr);
    return attended;
  };
  const double attended = watched([&] {
    if (checks_->recompute_due(step)) return checks_->gradients(step, *loader_, here);
    return tokamak::compute_gradients(engine(), batches_of(*loader_, progress()), micro_batches);
  });
  // Now, so that the device never waits for the host, and that the state is still the one after the step before.
  if (read_outcome() == Gradients::kLost) {
    Loader again(open_.data->train, here);
    watched([&] { return tokamak::compute_gradients(engine(), batches_of(again, progress()), micro_batches); });
  }
  if (activations != nullptr) activations->finish(engine().compute());
  return attended;
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
  if (!saves_soon_ && !is_due) return;
  read_outcome();
  const std::string no_good = doubt();
  if (!no_good.empty() && !is_due) return;  // said when it was due
  saves_soon_ = !checkpoints_.save(state_, no_good);
}

void Trainer::save_last() {
  if (options_.trace_step > 0) return;  // the next trace begins with the checkpoint that it is given, too
  const PhaseScope phase(progress(), Phase::kStop);
  read_outcome();
  checkpoints_.save_last(state_, doubt());
}

}  // namespace tokamak

// The loop of a training run; how one starts is in trainer_setup.cc.
#include "train/trainer.h"

#include "base/log.h"
#include "base/process.h"
#include "comm/collective_error.h"
#include "train/evaluator.h"
#include "train/tensor_records.h"

namespace tokamak {

namespace {

constexpr int64_t kTimeIsOver = 1000;  // beyond the numbers of signals

}  // namespace

RunEnd Trainer::run() {
  RunEnd end = RunEnd::kDone;
  write_status(RunStatus::State::kRunning, 0);
  or_record_end([&] { end = train(); });
  if (end == RunEnd::kDone) {
    record_end(RunStatus::State::kDone, "done", 0);
  } else {
    record_end(RunStatus::State::kStopped, "stopped", static_cast<int>(Kind::kStopped));
  }
  return end;
}

RunEnd Trainer::train() {
  const PhaseScope training(options_.progress, Phase::kStep);
  if (was_done_ && comm_.rank() == 0) {
    const std::string limit = config_.training.max_steps > 0 ? str("training.max_steps above ", state_.step)
                                                             : str("training.max_tokens above ", state_.tokens);
    log::info("nothing to train: the run is done at step ", state_.step, "; ", limit, " trains on");
  }
  while (!finished()) {
    if (should_stop()) {
      checkpoints_->stop_reading();
      save_or_fail();
      return RunEnd::kStopped;
    }
    step();
    checkpoints_->take_snapshot_memory();
    if (finished()) break;
    evaluate_if_due();
    save_if_due();
  }
  save_or_fail();
  if (!was_done_ && !evaluate_if_due() && should_stop()) return RunEnd::kStopped;
  report_memory();
  return RunEnd::kDone;
}

void Trainer::step() {
  const int64_t step = state_.step + 1;
  const StepScope scope(options_.progress, step);
  const double lr = schedule_->at(step);
  trace_->begin(step);
  const StepSettings settings = {.t = step,
                                 .lr = lr,
                                 .max_grad_norm = config_.training.max_grad_norm,
                                 .micro_batches = loader_->micro_batches_per_step(),
                                 .guard = state_guard_ ? &*state_guard_ : nullptr,
                                 .statistics = statistics_due(step) ? run_.engine->statistics() : nullptr};
  double attended = 0;
  if (recompute_due(step)) {
    attended = checked_gradients(step);
    update_weights(*run_.engine, settings);
  } else {
    attended = run_step(
        *run_.engine, [&] { return next_batch(*loader_); }, settings);
  }
  reader_->fetch(step, lr, attended);
  trace_->end(step);
  state_.step = step;
  last_words_->at_step(step);
  state_.tokens += run_.shape.tokens_per_step();
  state_.next_sample += run_.shape.sequences_per_step;
  // A step late, so that the device never waits for the host; the last one at once.
  read_outcomes(finished() ? 0 : 1);
}

TokenBatch Trainer::next_batch(Loader& loader) {
  const MicroBatch& batch = loader.next();
  if (options_.progress != nullptr) options_.progress->tick();
  return view_of(batch);
}

void Trainer::read_outcomes(int64_t leave) {
  while (reader_->pending() > leave) {
    const StepOutcome outcome = reader_->take();
    see_state(outcome.step);
    monitor_->step(outcome, loader_->wait_seconds());
    if (statistics_due(outcome.step)) report_statistics(outcome.step);
    if (!outcome.applied && comm_.rank() == 0) {
      log::warning("step ", outcome.step, ": loss ", outcome.loss, ", gradient norm ", outcome.grad_norm,
                   ": not finite, the update is skipped");
    }
    bad_steps_.see(outcome);
  }
  report_stragglers();
}

bool Trainer::statistics_due(int64_t step) const {
  const int64_t interval = config_.metrics.tensor_statistics;
  return interval > 0 && (step % interval == 0 || step == run_.shape.total_steps);
}

void Trainer::report_statistics(int64_t step) {
  const ShardStatistics::Result result = run_.engine->statistics()->take();
  if (recorder_->reports()) monitor_->tensors(step, tensor_records(result.weights), result.seconds);
}

// In the records, too, where a report finds them: the watchdog has logged them.
void Trainer::report_stragglers() {
  if (!options_.stragglers) return;
  for (const Straggler& one : options_.stragglers()) {
    monitor_->event("straggler", state_.step, one.name, {{"seconds", one.seconds}, {"median_seconds", one.median}});
  }
}

bool Trainer::should_stop() {
  const int64_t reason = stop_reason();
  const bool at_limit = options_.stop_at_step > 0 && state_.step >= options_.stop_at_step;
  if (reason == 0 && !at_limit) return false;
  read_outcomes(0);
  const std::string text = reason == kTimeIsOver ? "run.stop_after"
                           : reason != 0         ? str("signal ", reason)
                                                 : str("--stop-at-step ", options_.stop_at_step);
  if (comm_.rank() == 0) log::info(text, ": stopping after step ", state_.step, " of ", run_.shape.total_steps);
  monitor_->event("stop", state_.step, text);
  return true;
}

int64_t Trainer::stop_reason() {
  int64_t own = stop_.received();
  const Duration limit = config_.run.stop_after;
  if (own == 0 && !limit.is_none() && process_age() >= limit.seconds) own = kTimeIsOver;
  return comm_.max(own);
}

void Trainer::stop_between() {
  if (stop_reason() != 0) throw StopRequested();
}

bool Trainer::evaluate_if_due() {
  try {
    if (due(config_.training.validation_interval)) validate();
    if (due(config_.training.evals_interval)) take_evals();
    if (due(config_.training.samples.interval)) take_samples();
    return true;
  } catch (const StopRequested&) {
    if (comm_.rank() == 0)
      log::warning("the validation, evaluation or samples of step ", state_.step, " are cut short by a stop");
    return false;
  }
}

void Trainer::validate() {
  if (!data_->validation) return;
  read_outcomes(0);
  const PhaseScope phase(options_.progress, Phase::kValidation);
  const OffTheClock off(monitor_->clock());
  const Evaluator evaluator(*data_->validation, validation_sequences(config_.training, run_.shape, *data_->validation),
                            run_.shape.micro_batch, config_.data.document_masking);
  const double loss = evaluator.mean_loss(*run_.engine, [this] { stop_between(); });
  monitor_->validation(state_.step, loss, data_->bits_per_byte(loss), off.seconds());
}

void Trainer::take_evals() {
  if (config_.training.evals.empty()) return;
  read_outcomes(0);
  const PhaseScope phase(options_.progress, Phase::kEvals);
  const OffTheClock off(monitor_->clock());
  const std::vector<NamedValue> results = options_.evals(*run_.engine, [this] { stop_between(); });
  monitor_->evals(state_.step, results, off.seconds());
}

void Trainer::take_samples() {
  if (options_.sampler == nullptr) return;
  read_outcomes(0);
  const PhaseScope phase(options_.progress, Phase::kSamples);
  const OffTheClock off(monitor_->clock());
  Sampler::Result result = options_.sampler->run(*run_.engine, [this] { stop_between(); });
  if (!result.problem.empty() && comm_.rank() == 0) {
    log::warning("the samples of step ", state_.step, " end early: ", result.problem);
  }
  monitor_->samples(state_.step, std::move(result.samples), off.seconds());
}

// Of a start that another has taken over, nothing is written: the file is that one's.
void Trainer::write_status(RunStatus::State state, int code, const std::string& cause) const {
  if (comm_.rank() != 0) return;
  const std::string& incarnation = checkpoints_->incarnation();
  if (state != RunStatus::State::kRunning) {
    const std::optional<RunStatus> before = read_run_status(config_.run.output_dir);
    if (before && before->incarnation != incarnation) return;
  }
  write_run_status(config_.run.output_dir, {.state = state,
                                            .code = code,
                                            .step = state_.step,
                                            .total_steps = run_.shape.total_steps,
                                            .incarnation = incarnation,
                                            .cause = cause});
}

// The update right before the first bad step may be what made the weights bad, so its checkpoint is no good either.
std::string Trainer::advice_for_bad_steps(int64_t first) const {
  const std::string path = checkpoints_->newest_before(first - 1);
  return str("resume ", path.empty() ? "from an older checkpoint" : "with checkpoint.load=" + path,
             " and a lower optimizer.lr or training.max_grad_norm, or look at the data there");
}

void Trainer::report_memory() const {
  const int64_t peak = run_.engine->backend().device->peak_bytes();
  if (peak == 0) {  // without a free descriptor /proc cannot be read
    log::info("memory: planned ", human_bytes(planned_bytes_), "; the system does not say the peak");
    return;
  }
  log::info("memory: planned ", human_bytes(planned_bytes_), ", peak ", human_bytes(peak), " (",
            fixed(100.0 * static_cast<double>(peak) / static_cast<double>(planned_bytes_), 1), "% of the plan)");
}

}  // namespace tokamak

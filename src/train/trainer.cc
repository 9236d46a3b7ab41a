// The loop of a training run; how one starts is in trainer_setup.cc.
#include "train/trainer.h"

#include "base/log.h"
#include "comm/collective_error.h"
#include "train/evaluator.h"

namespace tokamak {

RunEnd Trainer::run() {
  const PhaseScope training(options_.progress, Phase::kStep);
  while (!finished()) {
    if (should_stop()) {
      save_or_fail();
      return RunEnd::kStopped;
    }
    train_step();
    validate_if_due();
    take_evals_if_due();
    save_if_due();
  }
  save_or_fail();
  report_memory();
  return RunEnd::kDone;
}

void Trainer::train_step() {
  const int64_t step = state_.step + 1;
  const StepScope scope(options_.progress, step);
  const double lr = schedule_->at(step);
  trace_->begin(step);
  const double attended = run_step(*run_.engine, [&] { return next_batch(); },
                                   {.t = step,
                                    .lr = lr,
                                    .max_grad_norm = config_.training.max_grad_norm,
                                    .micro_batches = loader_->micro_batches_per_step()});
  reader_->fetch(step, lr, attended);
  trace_->end(step);
  state_.step = step;
  state_.tokens += run_.shape.tokens_per_step();
  state_.next_sample += run_.shape.sequences_per_step;
  // A step late, so that the device never waits for the host; the last one at once.
  read_outcomes(finished() ? 0 : 1);
}

TokenBatch Trainer::next_batch() {
  const MicroBatch& batch = loader_->next();
  if (options_.progress != nullptr) options_.progress->tick();
  return view_of(batch);
}

void Trainer::read_outcomes(int64_t leave) {
  while (reader_->pending() > leave) {
    const StepOutcome outcome = reader_->take();
    monitor_->step(outcome, loader_->wait_seconds());
    if (!outcome.applied && comm_.rank() == 0) {
      log::warning("step ", outcome.step, ": loss ", outcome.loss, ", gradient norm ", outcome.grad_norm,
                   ": not finite, the update is skipped");
    }
    bad_steps_.see(outcome);
  }
}

bool Trainer::should_stop() {
  const int signal = stop_.agreed(comm_);
  const bool at_limit = options_.stop_at_step > 0 && state_.step >= options_.stop_at_step;
  if (signal == 0 && !at_limit) return false;
  read_outcomes(0);
  const std::string reason = signal != 0 ? str("signal ", signal) : "--stop-at-step";
  if (comm_.rank() == 0) {
    log::info(reason, signal != 0 ? "" : str(" ", options_.stop_at_step), ": stopping after step ", state_.step, " of ",
              run_.shape.total_steps);
  }
  monitor_->event("stop", state_.step, reason);
  return true;
}

void Trainer::validate_if_due() {
  if (!data_->validation || !due(config_.training.validation_interval)) return;
  read_outcomes(0);
  const PhaseScope phase(options_.progress, Phase::kValidation);
  const OffTheClock off(monitor_->clock());
  const Evaluator evaluator(*data_->validation, config_.training.validation_sequences, run_.shape.micro_batch,
                            config_.data.document_masking);
  const double loss = evaluator.mean_loss(*run_.engine);
  monitor_->validation(state_.step, loss, off.seconds());
}

void Trainer::take_evals_if_due() {
  if (config_.training.evals.empty() || !due(config_.training.evals_interval)) return;
  read_outcomes(0);
  const PhaseScope phase(options_.progress, Phase::kEvals);
  const OffTheClock off(monitor_->clock());
  const std::vector<NamedValue> results = options_.evals(*run_.engine);
  monitor_->evals(state_.step, results, off.seconds());
}

void Trainer::save_if_due() {
  if (checkpoints_->due(state_)) save();
}

std::string Trainer::save() {
  read_outcomes(0);
  if (checkpoints_->saved(state_)) return "";
  const bool last = options_.progress != nullptr && options_.progress->phase() == Phase::kStop;
  const PhaseScope phase(options_.progress, last ? Phase::kStop : Phase::kSave);
  const OffTheClock off(monitor_->clock());
  const SaveOutcome outcome =
      checkpoints_->save({state_, config_.run.seed, options_.config_text, data_->train.state_json(state_.next_sample)});
  monitor_->event(outcome.committed ? "checkpoint" : "checkpoint refused", state_.step,
                  outcome.committed ? checkpoints_->path_of(state_) : outcome.reason);
  return outcome.reason;
}

// While training goes on, a refused save costs nothing yet; at the end it would cost the run.
void Trainer::save_or_fail() {
  const PhaseScope phase(options_.progress, Phase::kStop);
  const std::string refusal = save();
  if (refusal.empty()) return;
  throw SharedError(Kind::kCheckpoint,
                    str("the run ends at step ", state_.step, ", but its last checkpoint was refused: ", refusal),
                    "make room and start again: training goes on from the newest checkpoint");
}

void Trainer::report_memory() const {
  const int64_t peak = run_.engine->backend().device->peak_bytes();
  log::info("memory: planned ", human_bytes(planned_bytes_), ", peak ", human_bytes(peak), " (",
            fixed(100.0 * static_cast<double>(peak) / static_cast<double>(planned_bytes_), 1), "% of the plan)");
}

}  // namespace tokamak

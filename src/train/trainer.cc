// The loop of a training run; how one starts is in trainer_setup.cc.
#include "train/trainer.h"

#include "base/log.h"
#include "comm/collective_error.h"
#include "train/memory_check.h"
#include "train/state_slices.h"

namespace tokamak {

RunEnd Trainer::run() {
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
  const double lr = schedule_->at(step);
  const double attended = run_step(*assembly_, [&] { return view_of(loader_->next()); },
                                   {.t = step,
                                    .lr = lr,
                                    .max_grad_norm = config_.training.max_grad_norm,
                                    .micro_batches = loader_->micro_batches_per_step()});
  reader_->fetch(step, lr, attended);
  state_.step = step;
  state_.tokens += shape_.tokens_per_step();
  state_.next_sample += shape_.sequences_per_step;
  // A step late, so that the device never waits for the host; the last one at once.
  read_outcomes(finished() ? 0 : 1);
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
  if (comm_.rank() == 0) {
    log::info(signal != 0 ? str("signal ", signal) : str("--stop-at-step ", options_.stop_at_step),
              ": stopping after step ", state_.step, " of ", shape_.total_steps);
  }
  monitor_->event("stop", state_.step, signal != 0 ? str("signal ", signal) : "--stop-at-step");
  return true;
}

void Trainer::validate_if_due() {
  if (!evaluator_ || !due(config_.training.validation_interval)) return;
  read_outcomes(0);
  const OffTheClock off(monitor_->clock());
  const double loss = evaluator_->mean_loss(*assembly_);
  monitor_->validation(state_.step, loss, off.seconds());
}

void Trainer::take_evals_if_due() {
  if (config_.training.evals.empty() || !due(config_.training.evals_interval)) return;
  read_outcomes(0);
  const OffTheClock off(monitor_->clock());
  const std::vector<NamedValue> results = options_.evals(*assembly_);
  monitor_->evals(state_.step, results, off.seconds());
}

void Trainer::save_if_due() {
  const TrainingLength& interval = config_.checkpoint.interval;
  if (!(interval.value > 0)) return;  // only at the end
  bool due = false;
  if (interval.unit == TrainingLength::Unit::kSeconds) {
    due = comm_.max(since_save_.seconds() >= interval.value) > 0;  // clocks differ: any rank's word counts
  } else if (interval.unit == TrainingLength::Unit::kTokens) {
    due = static_cast<double>(state_.tokens - tokens_saved_) >= interval.value;
  } else {
    const int64_t steps =
        length_in_steps(interval, "checkpoint.interval", shape_.total_steps, shape_.tokens_per_step());
    due = state_.step % steps == 0;
  }
  if (due) save();
}

int64_t Trainer::planned_with_program() const {
  return planned_bytes(assembly_->plan(), *backend_.device) + program_bytes_;
}

void Trainer::report_memory() const {
  const int64_t planned = planned_with_program();
  const int64_t peak = backend_.device->peak_bytes();
  log::info("memory: planned ", human_bytes(planned), ", peak ", human_bytes(peak), " (",
            fixed(100.0 * static_cast<double>(peak) / static_cast<double>(planned), 1), "% of the plan)");
}

// While training goes on, a refused save costs nothing yet; at the end it would cost the run.
void Trainer::save_or_fail() {
  save();
  if (state_.step == saved_step_ || state_.step == 0) return;
  throw SharedError(Kind::kCheckpoint,
                    str("the run ends at step ", state_.step, ", but its last checkpoint was refused: ", refusal_),
                    "make room and start again: training goes on from the newest checkpoint");
}

void Trainer::save() {
  read_outcomes(0);
  if (state_.step == saved_step_ || state_.step == 0) return;
  const OffTheClock off(monitor_->clock());
  const TrainingPoint point{state_, config_.run.seed, options_.config_text,
                            train_data_->state_json(state_.next_sample)};
  host_state_->fetch();
  const SaveOutcome outcome = checkpointer_->save(point, shard_place(comm_), host_state_->slices());
  since_save_.restart();
  tokens_saved_ = state_.tokens;
  refusal_ = outcome.reason;
  if (outcome.committed) saved_step_ = state_.step;
  monitor_->event(outcome.committed ? "checkpoint" : "checkpoint refused", state_.step,
                  outcome.committed ? checkpointer_->store().path_of(state_.step) : outcome.reason);
}

}  // namespace tokamak

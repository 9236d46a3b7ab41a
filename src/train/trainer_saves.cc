// How saves go on beside training, and what is saved when.
#include "base/log.h"
#include "comm/collective_error.h"
#include "train/trainer.h"

namespace tokamak {

// The last save of a run is part of its stop.
Phase Trainer::save_phase() const {
  const bool last = options_.progress != nullptr && options_.progress->phase() == Phase::kStop;
  return last ? Phase::kStop : Phase::kSave;
}

void Trainer::save_if_due() {
  if (checkpoints_->saving()) {
    if (const auto outcome = checkpoints_->poll_save()) report_save(*outcome);
  }
  if (!checkpoints_->due(state_)) return;
  read_outcomes(0);
  if (bad_steps_.in_a_row() == 0) {
    begin_save(Retention::kPrune);
    if (!config_.checkpoint.async) finish_save();
    return;
  }
  // Each save pushes out an older one, which may be the last good one.
  checkpoints_->put_off(state_);
  report_save({.step = state_.step, .reason = str("the last ", bad_steps_.in_a_row(), " step(s) were not finite")});
}

void Trainer::begin_save(Retention retention) {
  const Stopwatch waited;
  if (const auto last = finish_save(); last && last->bytes > 0 && comm_.rank() == 0) {
    log::info("the save of step ", state_.step, " waited ", fixed(waited.seconds(), 1), " s for that of step ",
              last->step, ": the disk takes longer than checkpoint.interval");
  }
  const PhaseScope phase(options_.progress, save_phase());
  const OffTheClock off(monitor_->clock());
  check_state_before_save();
  recorder_->flush();  // a run that goes on from this checkpoint finds the records of the steps before it
  save_copy_ = checkpoints_->begin_save(
      {state_, config_.run.seed, options_.config_text, data_->train.state_json(state_.next_sample)}, retention);
  save_stall_ = off.seconds();
}

std::optional<SaveOutcome> Trainer::finish_save() {
  if (!checkpoints_->saving()) return std::nullopt;
  const PhaseScope phase(options_.progress, save_phase());
  const OffTheClock off(monitor_->clock());
  const SaveOutcome outcome = checkpoints_->finish_save();
  save_stall_ += off.seconds();
  report_save(outcome);
  return outcome;
}

void Trainer::report_save(const SaveOutcome& outcome) {
  if (outcome.committed && outcome.bytes == 0) return;  // it was there already
  const NamedValue tokens = count_value("tokens", outcome.step * run_.shape.tokens_per_step());
  if (!outcome.committed) return monitor_->event("checkpoint refused", outcome.step, outcome.reason, {tokens});
  monitor_->event("checkpoint", outcome.step, checkpoints_->path_of(outcome.step),
                  {tokens,
                   {"checkpoint/stall", save_stall_},
                   {"checkpoint/copy", save_copy_},
                   {"checkpoint/seconds", outcome.seconds},
                   count_value("checkpoint/bytes", outcome.bytes)});
}

// While training goes on, a refused save costs nothing yet; at the end it would cost the run.
void Trainer::save_or_fail() {
  const PhaseScope phase(options_.progress, Phase::kStop);
  read_outcomes(0);
  std::optional<SaveOutcome> last = finish_save();
  if (!checkpoints_->saved(state_)) {
    begin_save(bad_steps_.in_a_row() == 0 ? Retention::kPrune : Retention::kKeepAll);
    last = finish_save();
  }
  if (checkpoints_->saved(state_)) return;
  throw SharedError(Kind::kCheckpoint,
                    str("the run ends at step ", state_.step, ", but its last checkpoint was refused: ", last->reason),
                    "make room or mend the disk, then start again: training goes on from the newest checkpoint");
}

}  // namespace tokamak

#include "train/run_saves.h"

#include "base/log.h"
#include "comm/collective_error.h"

namespace tokamak {

// The last save of a run is part of its stop.
Phase RunSaves::phase() const {
  const bool last = setup_.progress != nullptr && setup_.progress->phase() == Phase::kStop;
  return last ? Phase::kStop : Phase::kSave;
}

void RunSaves::go_to(const RunState& state) {
  finish();
  setup_.checkpoints.go_to(state);
}

bool RunSaves::due(const RunState& state) {
  if (setup_.checkpoints.saving()) {
    if (const auto outcome = setup_.checkpoints.poll_save()) report(*outcome);
  }
  return setup_.checkpoints.due(state);
}

void RunSaves::save(const RunState& state, int64_t bad_steps) {
  if (bad_steps > 0) {
    setup_.checkpoints.put_off(state);
    return report({.step = state.step, .reason = str("the last ", bad_steps, " step(s) were not finite")});
  }
  begin(state, Retention::kPrune);
  if (!setup_.options.async) finish();
}

void RunSaves::begin(const RunState& state, Retention retention) {
  const Stopwatch waited;
  if (const auto last = finish(); last && last->bytes > 0 && setup_.records.reports()) {
    log::info("the save of step ", state.step, " waited ", fixed(waited.seconds(), 1), " s for that of step ",
              last->step, ": the disk takes longer than checkpoint.interval");
  }
  const PhaseScope scope(setup_.progress, phase());
  const OffTheClock off(setup_.records.clock());
  setup_.verify_state();
  setup_.records.flush();  // a run that goes on from this checkpoint finds the records of the steps before it
  copy_ = setup_.checkpoints.begin_save(
      {state, setup_.seed, setup_.config_text, setup_.data.state_json(state.next_sample)}, retention);
  stall_ = off.seconds();
}

std::optional<SaveOutcome> RunSaves::finish() {
  if (!setup_.checkpoints.saving()) return std::nullopt;
  const PhaseScope scope(setup_.progress, phase());
  const OffTheClock off(setup_.records.clock());
  const SaveOutcome outcome = setup_.checkpoints.finish_save();
  stall_ += off.seconds();
  report(outcome);
  return outcome;
}

void RunSaves::report(const SaveOutcome& outcome) {
  if (outcome.committed && outcome.bytes == 0) return;  // it was there already
  Monitor& monitor = setup_.records.monitor();
  const NamedValue tokens = count_value("tokens", setup_.table.tokens_after(outcome.step));
  if (!outcome.committed) return monitor.event("checkpoint refused", outcome.step, outcome.reason, {tokens});
  monitor.event("checkpoint", outcome.step, setup_.checkpoints.path_of(outcome.step),
                {tokens,
                 {"checkpoint/stall", stall_},
                 {"checkpoint/copy", copy_},
                 {"checkpoint/seconds", outcome.seconds},
                 count_value("checkpoint/bytes", outcome.bytes)});
}

// While training goes on, a refused save costs nothing yet; at the end it would cost the run.
void RunSaves::save_last(const RunState& state, int64_t bad_steps) {
  std::optional<SaveOutcome> last = finish();
  if (!setup_.checkpoints.saved(state)) {
    begin(state, bad_steps == 0 ? Retention::kPrune : Retention::kKeepAll);
    last = finish();
  }
  if (setup_.checkpoints.saved(state)) return;
  throw SharedError(Kind::kCheckpoint,
                    str("the run ends at step ", state.step, ", but its last checkpoint was refused: ", last->reason),
                    "make room or mend the disk, then start again: training goes on from the newest checkpoint");
}

}  // namespace tokamak

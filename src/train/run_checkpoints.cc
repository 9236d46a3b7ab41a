#include "train/run_checkpoints.h"

#include <algorithm>
#include <set>

#include "base/log.h"
#include "base/printable.h"
#include "comm/collective_error.h"
#include "comm/rank_zero.h"
#include "tensor/state_kinds.h"
#include "train/spikes.h"

namespace tokamak {

namespace {

constexpr const char* kOptimizer = "optimizer";  // in checkpoint.allow_changes

MissingState on_missing_state(const CheckpointOptions& options) {
  const auto& allowed = options.allow_changes;
  const bool may = std::find(allowed.begin(), allowed.end(), kOptimizer) != allowed.end();
  return may ? MissingState::kStartOver : MissingState::kRefuse;
}

// An average that the checkpoint lacks begins in this run.
std::vector<UnitSlices> without_new_averages(std::vector<UnitSlices> units, const std::vector<std::string>& saved) {
  for (UnitSlices& unit : units) {
    std::erase_if(unit.slices, [&](const KindSlice& slice) {
      return starts_with(slice.kind, kAveragePrefix) &&
             std::find(saved.begin(), saved.end(), slice.kind) == saved.end();
    });
  }
  return units;
}

// Forgets the progress of averages that the config lacks.
void keep_known_averages(const std::vector<AverageOptions>& options, RunState& state, const std::string& checkpoint,
                         bool logs) {
  std::set<std::string> known;
  for (const AverageOptions& one : options) {
    known.insert(one.name);
    if (!logs || state.find_average(one.name) != nullptr) continue;
    log::info("average ", one.name, ": not begun in ", checkpoint, "; it begins at its start or, if that is past, now");
  }
  std::erase_if(state.averages, [&](const AverageProgress& one) {
    const bool is_known = known.count(one.name) > 0;
    if (!is_known && logs)
      log::info("average ", printable(one.name), " of ", checkpoint, ": not in this config, dropped");
    return !is_known;
  });
}

}  // namespace

bool load_weights(Comm& comm, CheckpointReader& reader, Engine& engine, MissingState missing) {
  std::optional<HostState> read;
  std::vector<UnitSlices> slices;
  std::string lacking;
  collectively(comm, [&] {
    read.emplace(engine);
    slices = without_new_averages(read->slices(), reader.manifest().kinds);
    if (reader.manifest().point.state.step == 0) return;
    lacking = missing_state(reader, slices);
    if (lacking.empty() || missing == MissingState::kStartOver) return;
    fail(Kind::kCheckpoint, str(reader.directory(), " ", lacking, ": it was trained with another optimizer"),
         "use the checkpoint's optimizer.name and groups; or, to start the optimizer's state from zero, "
         "checkpoint.allow_changes=[optimizer]");
  });
  load(comm, reader, read->place(), slices, lacking.empty() ? LoadKinds::kAll : LoadKinds::kMasters);
  read->push();
  return !lacking.empty();
}

RunCheckpoints::RunCheckpoints(Comm& comm, Engine& engine, const RunConfig& config, OpenRun& open,
                               std::function<void()> verify_state)
    : comm_(comm),
      engine_(engine),
      config_(config),
      open_(open),
      verify_state_(std::move(verify_state)),
      clock_(config.checkpoint.interval) {}

RunState RunCheckpoints::load_or_initialize(const Check& check) {
  snapshot_.emplace(engine_);
  RunPoint point = open_.take_point();
  RunState state = point.state;
  if (!point.checkpoint) {
    engine_.parameters().initialize(static_cast<uint64_t>(config_.run.seed), engine_.compute());
    if (comm_.rank() == 0) log::info("weights: initialised from run.seed ", config_.run.seed);
    return state;
  }
  CheckpointReader& reader = *point.checkpoint;
  // This precedes the weights, whose errors of shapes would say the same at length. An imported model, of step 0, was
  // not trained with its config.
  collectively(comm_, [&] {
    if (state.step > 0 && !point.is_border) check(reader.manifest().point, reader.directory());
  });
  load(reader, state, comm_.rank() == 0 && !point.is_border);
  if (comm_.rank() == 0 && !point.is_border) {
    log::info("weights: resumed from ", reader.directory(), " (step ", state.step, ", ",
              human_count(static_cast<double>(state.tokens)), " tokens, saved by ", reader.manifest().world_size,
              " rank(s))");
  }
  return state;
}

void RunCheckpoints::load(CheckpointReader& reader, RunState& state, bool logs) {
  if (load_weights(comm_, reader, engine_, on_missing_state(config_.checkpoint))) {
    state.optimizer_start = state.step;
    if (comm_.rank() == 0)
      log::warning("the optimizer's state starts from zero: checkpoint.allow_changes has optimizer");
  }
  keep_known_averages(config_.averages, state, reader.directory(), logs);
}

void RunCheckpoints::go_to(const RunState& state) {
  finish();
  open_.checkpointer.go_to(state.step);
  clock_.restart(state);
  if (!open_.checkpointer.committed()) return;
  // Writes nothing, but reads and prunes what a stopped start had no time for.
  const bool keeps = may_go_back(config_.resilience.spike, state.outcomes);
  open_.checkpointer.begin_save({.state = state}, place_of(engine_), {},
                                keeps ? Retention::kKeepAll : Retention::kPrune);
}

// Whether nothing would be lost without a save: a checkpoint holds this state, or no step is done.
bool RunCheckpoints::saved(const RunState& state) const {
  return state.step == 0 || open_.checkpointer.committed() == state.step;
}

// The last save of a run is part of its stop.
Phase RunCheckpoints::phase() const {
  const bool last = open_.progress != nullptr && open_.progress->phase() == Phase::kStop;
  return last ? Phase::kStop : Phase::kSave;
}

void RunCheckpoints::advance() {
  if (!open_.checkpointer.saving()) return;
  if (const auto outcome = open_.checkpointer.poll_save()) report(*outcome);
}

bool RunCheckpoints::save(const RunState& state, const std::string& doubt) {
  if (!doubt.empty()) {
    clock_.restart(state);
    report({.step = state.step, .reason = doubt});
    return false;
  }
  begin(state, Retention::kPrune);
  if (!config_.checkpoint.async) finish();
  return true;
}

void RunCheckpoints::begin(const RunState& state, Retention retention) {
  const Stopwatch waited;
  if (const auto last = finish(); last && last->bytes > 0 && open_.records.reports()) {
    log::info("the save of step ", state.step, " waited ", fixed(waited.seconds(), 1), " s for that of step ",
              last->step, ": the disk takes longer than checkpoint.interval");
  }
  const PhaseScope scope(open_.progress, phase());
  const OffTheClock off(open_.records.clock());
  verify_state_();
  open_.records.flush();  // a run that goes on from this checkpoint finds the records of the steps before it
  const Stopwatch copy;
  collectively(comm_, [&] { snapshot_->fetch(); });  // a rank may have no memory for it
  copy_ = copy.seconds();
  open_.checkpointer.begin_save(
      {state, config_.run.seed, open_.facts.config_text, open_.data->train.state_json(state.next_sample)},
      place_of(engine_), snapshot_->slices(), retention);
  clock_.restart(state);
  stall_ = off.seconds();
}

std::optional<SaveOutcome> RunCheckpoints::finish() {
  if (!open_.checkpointer.saving()) return std::nullopt;
  const PhaseScope scope(open_.progress, phase());
  const OffTheClock off(open_.records.clock());
  const SaveOutcome outcome = open_.checkpointer.finish_save();
  stall_ += off.seconds();
  report(outcome);
  return outcome;
}

void RunCheckpoints::report(const SaveOutcome& outcome) {
  if (outcome.committed && outcome.bytes == 0) return;  // the checkpoint was there already
  Monitor& monitor = open_.records.monitor();
  const NamedValue tokens = count_value("tokens", open_.table.tokens_after(outcome.step));
  if (!outcome.committed) return monitor.event("checkpoint refused", outcome.step, outcome.reason, {tokens});
  monitor.event("checkpoint", outcome.step, open_.checkpointer.store().path_of(outcome.step),
                {tokens,
                 {"checkpoint/stall", stall_},
                 {"checkpoint/copy", copy_},
                 {"checkpoint/seconds", outcome.seconds},
                 count_value("checkpoint/bytes", outcome.bytes)});
}

// While training goes on, a refused save costs nothing yet; at the end it would cost the run.
void RunCheckpoints::save_last(const RunState& state, const std::string& doubt) {
  std::optional<SaveOutcome> last = finish();
  if (!saved(state)) {
    begin(state, doubt.empty() ? Retention::kPrune : Retention::kKeepAll);
    last = finish();
  }
  if (saved(state)) return;
  throw SharedError(
      Kind::kCheckpoint,
      str("the state after step ", state.step, " must be saved, but its checkpoint was refused: ", last->reason),
      "make room or mend the disk, then start again: training goes on from the newest checkpoint");
}

std::string RunCheckpoints::newest_before(int64_t step) {
  finish();
  std::string newest;
  for (const int64_t saved : open_.checkpointer.steps()) {
    if (saved < step) newest = open_.checkpointer.store().path_of(saved);
  }
  return newest;
}

bool RunCheckpoints::has_before(int64_t step) {
  finish();
  const std::vector<int64_t> steps = open_.checkpointer.steps();
  return std::any_of(steps.begin(), steps.end(),
                     [&](int64_t saved) { return open_.first_state_of_row() <= saved && saved < step; });
}

RunState RunCheckpoints::load_before(int64_t step) {
  const PhaseScope phase(open_.progress, Phase::kLoad);
  finish();
  CheckpointReader reader = open_.checkpointer.read_between(open_.first_state_of_row(), step - 1);
  RunState state = open_.state_of(reader.manifest().point);
  load(reader, state, comm_.rank() == 0);
  return state;
}

}  // namespace tokamak

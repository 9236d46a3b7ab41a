#include "train/open_run.h"

#include <optional>

#include "base/file.h"
#include "base/log.h"
#include "base/run_files.h"
#include "comm/collective_error.h"
#include "comm/rank_zero.h"

namespace tokamak {

namespace {

bool waits_for_disk(Phase phase) { return phase == Phase::kLoad || phase == Phase::kSave || phase == Phase::kStop; }

template <class Make>
auto made_collectively(Comm& comm, const Make& make) {
  std::optional<decltype(make())> made;
  collectively(comm, [&] { made.emplace(make()); });
  return std::move(*made);
}

// A run that began from another run's checkpoint resumes from its own as soon as it has some.
CheckpointOptions options_of_start(Comm& comm, const RunConfig& config, const CheckpointStore& own) {
  CheckpointOptions options = config.checkpoint;
  if (options.load == "auto" || options.load == "none") return options;
  const bool from_elsewhere = parent_directory(options.load) != own.directory();
  const bool has_own = value_of_rank_zero(comm, [&] { return !own.steps().empty(); });
  if (from_elsewhere && has_own) options.load = "auto";
  return options;
}

Checkpointer lock_directory(Comm& comm, const RunConfig& config, RunProgress* progress) {
  collectively(comm, [&] { make_directories(config.run.output_dir, Kind::kConfig); });
  const CheckpointStore store(run_files::at(config.run.output_dir, run_files::kCheckpoints));
  return {comm, store.directory(), {.options = options_of_start(comm, config, store), .tick = [progress] {
                                      // While the run trains, the disk's progress does not count: it would hide that
                                      // a step hangs.
                                      if (progress != nullptr && waits_for_disk(progress->phase())) progress->tick();
                                    }}};
}

// Makes the state at a row's end the one at the next row's beginning.
void begin_row(RunState& state) {
  state.next_sample = 0;
  state.outcomes = {};            // other data, lengths or batches have another usual loss
  state.owes_evaluation = false;  // the row before has made it
}

RunRecords open_records(World& world, const RunConfig& config, int64_t total_steps, const std::string& incarnation,
                        StartFacts& facts) {
  // The directory is locked: no other run writes there.
  log::also_to(run_files::at(config.run.output_dir, run_files::kLog));
  facts.startup.done("lock");
  facts.incarnation = incarnation;
  facts.ranks = world.size();
  facts.hosts = all_hosts(world.comm());
  return {world, config, total_steps, facts};
}

}  // namespace

OpenRun::OpenRun(World& world, const RunConfig& complete, StartFacts given, RunProgress* watched)
    : config(complete),
      facts(std::move(given)),
      progress(watched),
      table(made_collectively(world.comm(), [&] { return RunTable(config); })),
      data(made_collectively(
          world.comm(),
          [&] { return RunData(config_of_row(config, table.rows().front()), stage_places(config, table).front()); })),
      checkpointer((facts.startup.done("data"), lock_directory(world.comm(), config, progress))),
      records(open_records(world, config, table.total_steps(), checkpointer.incarnation(), facts)),
      comm_(world.comm()) {}

void OpenRun::open_row(int64_t row, const std::vector<LeftOut>& left_out) {
  if (row == row_) return;
  row_ = row;
  collectively(comm_, [&] { data.emplace(row_config(), stage_places(config, table, left_out)[row_]); });
}

void OpenRun::find_start() {
  const PhaseScope phase(progress, Phase::kLoad);
  point_.checkpoint = checkpointer.resume();
  if (!point_.checkpoint) return;
  restore();
  if (point_.state.step < row().last_step() || is_last_row() || point_.state.owes_evaluation) return;
  open_row(row_ + 1, point_.state.left_out);
  begin_row(point_.state);
}

// A checkpoint has the data of the row that its last step belongs to.
void OpenRun::restore() {
  const TrainingPoint& saved = point_.checkpoint->manifest().point;
  RunState& state = point_.state;
  state = saved.state;
  expect_same_tokens(state);
  open_row(row_of_step(table.rows(), state.step), state.left_out);
  state = state_of(saved);
}

RunState OpenRun::state_of(const TrainingPoint& saved) const {
  RunState state = saved.state;
  if (state.step > 0 && state.step == first_state_of_row()) {
    begin_row(state);
  } else {
    collectively(comm_, [&] { state.next_sample = data->train.restore(saved.data); });
  }
  return state;
}

void OpenRun::expect_same_tokens(const RunState& state) const {
  const RunTable::Row next = table.at(state.step + 1);
  if (state.tokens == next.tokens) return;
  const std::string found =
      str(", but ", point_.checkpoint->directory(), " has ", state.tokens, " tokens after ", state.step, " steps");
  if (!has_rows(config)) {
    throw SharedError(Kind::kConfig,
                      str("training.global_batch_tokens is ", next.stage->options.global_batch_tokens, found),
                      "go on with the batch that the run began with");
  }
  throw SharedError(Kind::kConfig,
                    str("the stages of this config have ", next.tokens, " tokens in so many steps", found),
                    "keep the stages that the run has begun; their ends and later stages may change");
}

void OpenRun::next_row() {
  const PhaseScope phase(progress, Phase::kLoad);
  point_ = {.state = {}, .checkpoint = checkpointer.read_committed(), .is_border = true};
  const TrainingPoint& saved = point_.checkpoint->manifest().point;
  open_row(row_ + 1, saved.state.left_out);
  point_.state = state_of(saved);
}

}  // namespace tokamak

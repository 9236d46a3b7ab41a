#include "train/run_checkpoints.h"

#include "base/file.h"
#include "base/log.h"
#include "base/run_files.h"
#include "comm/collective_error.h"
#include "comm/rank_zero.h"

namespace tokamak {

namespace {

std::string directory_of(const RunConfig& config) {
  return run_files::at(config.run.output_dir, run_files::kCheckpoints);
}

// A run that began from another run's checkpoint resumes from its own as soon as it has some.
CheckpointOptions options_of_start(Comm& comm, const RunConfig& config) {
  CheckpointOptions options = config.checkpoint;
  if (options.load == "auto" || options.load == "none") return options;
  const CheckpointStore own(directory_of(config));
  const bool from_elsewhere = parent_directory(options.load) != own.directory();
  const bool has_own = value_of_rank_zero(comm, [&] { return !own.steps().empty(); });
  if (from_elsewhere && has_own) options.load = "auto";
  return options;
}

}  // namespace

void load_weights(Comm& comm, CheckpointReader& reader, Engine& engine) {
  std::optional<HostState> read;
  collectively(comm, [&] { read.emplace(engine); });
  load(comm, reader, read->place(), read->slices());
  read->push();
}

RunCheckpoints::RunCheckpoints(Comm& comm, const RunConfig& config, Tick tick)
    : comm_(comm),
      incarnation_(current_incarnation()),
      checkpointer_(comm, directory_of(config),
                    {.options = options_of_start(comm, config), .incarnation = incarnation_, .tick = std::move(tick)}),
      clock_(config.checkpoint.interval) {}

RunState RunCheckpoints::load_or_initialize(Engine& engine, const SampleSource& data, const RunTable& table,
                                            int64_t seed, const Check& check) {
  snapshot_.emplace(engine);
  std::optional<CheckpointReader> reader = checkpointer_.resume();
  if (!reader) {
    engine.parameters().initialize(static_cast<uint64_t>(seed), engine.compute());
    if (comm_.rank() == 0) log::info("weights: initialised from run.seed ", seed);
    return {};
  }
  const TrainingPoint& point = reader->manifest().point;
  RunState state = point.state;
  collectively(comm_, [&] { state.next_sample = data.restore(point.data); });
  // Before the weights: an error of their shapes would say the same at length. An imported model, of step 0, was not
  // trained with its config.
  collectively(comm_, [&] {
    if (state.step > 0) check(point.config, reader->directory());
  });
  load_weights(comm_, *reader, engine);
  const RunTable::Row next = table.at(state.step + 1);
  if (state.tokens != next.tokens) {
    throw SharedError(Kind::kConfig,
                      str("training.global_batch_tokens is ", next.stage->tokens_per_step(), ", but ",
                          reader->directory(), " has ", state.tokens, " tokens after ", state.step, " steps"),
                      "go on with the batch that the run began with");
  }
  const bool own = reader->directory() == path_of(state.step);
  clock_.resumed(state, own);
  if (comm_.rank() == 0) {
    log::info("weights: resumed from ", reader->directory(), " (step ", state.step, ", ",
              human_count(static_cast<double>(state.tokens)), " tokens, saved by ", reader->manifest().world_size,
              " rank(s))");
  }
  // Writes nothing, but reads and prunes what a stopped start had no time for.
  if (own) {
    being_saved_ = state;
    checkpointer_.begin_save(point, snapshot_->place(), {});
  }
  return state;
}

double RunCheckpoints::begin_save(const TrainingPoint& point, Retention retention) {
  const Stopwatch watch;
  collectively(comm_, [&] { snapshot_->fetch(); });  // a rank may have no memory for it
  const double copied = watch.seconds();
  checkpointer_.begin_save(point, snapshot_->place(), snapshot_->slices(), retention);
  being_saved_ = point.state;
  clock_.tried(point.state);
  return copied;
}

std::optional<SaveOutcome> RunCheckpoints::poll_save() {
  std::optional<SaveOutcome> outcome = checkpointer_.poll_save();
  if (outcome && outcome->committed) clock_.committed(being_saved_);
  return outcome;
}

SaveOutcome RunCheckpoints::finish_save() {
  SaveOutcome outcome = checkpointer_.finish_save();
  if (outcome.committed) clock_.committed(being_saved_);
  return outcome;
}

std::string RunCheckpoints::newest_before(int64_t step) const {
  return text_of_rank_zero(comm_, [&] {
    std::string newest;
    for (const int64_t saved : checkpointer_.store().steps()) {
      if (saved < step) newest = path_of(saved);
    }
    return newest;
  });
}

}  // namespace tokamak

#include "train/run_checkpoints.h"

#include "base/file.h"
#include "base/log.h"
#include "comm/collective_error.h"

namespace tokamak {

namespace {

std::string directory_of(const RunConfig& config) { return config.run.output_dir + "/checkpoints"; }

// A run that began from another run's checkpoint has its own soon, and goes on from those when it is started again.
CheckpointOptions options_of_start(Comm& comm, const RunConfig& config) {
  CheckpointOptions options = config.checkpoint;
  if (options.load == "auto" || options.load == "none") return options;
  const CheckpointStore own(directory_of(config));
  const bool from_elsewhere = parent_directory(options.load) != own.directory();
  const bool has_own = comm.max(comm.rank() == 0 && !own.steps().empty()) > 0;
  if (from_elsewhere && has_own) options.load = "auto";
  return options;
}

}  // namespace

RunCheckpoints::RunCheckpoints(Comm& comm, const RunConfig& config)
    : comm_(comm),
      incarnation_(current_incarnation()),
      checkpointer_(comm, directory_of(config),
                    {.options = options_of_start(comm, config), .incarnation = incarnation_}),
      clock_(config.checkpoint.interval) {}

RunState RunCheckpoints::load_or_initialize(Engine& engine, const SampleSource& data, const GlobalBatch& batch,
                                            int64_t seed) {
  collectively(comm_, [&] { host_state_.emplace(engine); });
  std::optional<CheckpointReader> reader = checkpointer_.resume();
  if (!reader) {
    engine.parameters().initialize(static_cast<uint64_t>(seed), engine.compute());
    if (comm_.rank() == 0) log::info("weights: initialised from run.seed ", seed);
    return {};
  }
  const TrainingPoint& point = reader->manifest().point;
  RunState state = point.state;
  collectively(comm_, [&] { state.next_sample = data.restore(point.data); });
  load(comm_, *reader, shard_place(comm_), host_state_->slices());
  host_state_->push();
  engine.parameters().masters_changed(engine.compute());
  if (state.tokens != state.step * batch.tokens_per_step()) {
    throw SharedError(Kind::kConfig,
                      str("training.global_batch_tokens is ", batch.tokens_per_step(), ", but ", reader->directory(),
                          " has ", state.tokens, " tokens after ", state.step, " steps"),
                      "go on with the batch that the run began with");
  }
  clock_.resumed(state, reader->directory() == path_of(state));
  if (comm_.rank() == 0) {
    log::info("weights: resumed from ", reader->directory(), " (step ", state.step, ", ",
              human_count(static_cast<double>(state.tokens)), " tokens, saved by ", reader->manifest().world_size,
              " rank(s))");
  }
  return state;
}

SaveOutcome RunCheckpoints::save(const TrainingPoint& point) {
  host_state_->fetch();
  SaveOutcome outcome = checkpointer_.save(point, shard_place(comm_), host_state_->slices());
  clock_.tried(point.state, outcome.committed);
  return outcome;
}

}  // namespace tokamak

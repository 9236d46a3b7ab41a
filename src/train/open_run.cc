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

OpenRun::OpenRun(World& world, const RunConfig& config, const GlobalBatch& batch, StartFacts given,
                 RunProgress* watched)
    : facts(std::move(given)),
      progress(watched),
      table(made_collectively(world.comm(), [&] { return RunTable(config, batch); })),
      data(made_collectively(world.comm(), [&] { return RunData(config, table); })),
      checkpointer((facts.startup.done("data"), lock_directory(world.comm(), config, progress))),
      records(open_records(world, config, table.total_steps(), checkpointer.incarnation(), facts)) {}

}  // namespace tokamak

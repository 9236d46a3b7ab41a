#include "train/open_run.h"

#include <optional>

#include "base/file.h"
#include "base/log.h"
#include "base/run_files.h"
#include "comm/collective_error.h"

namespace tokamak {

namespace {

bool waits_for_disk(Phase phase) { return phase == Phase::kLoad || phase == Phase::kSave || phase == Phase::kStop; }

template <class Make>
auto made_collectively(Comm& comm, const Make& make) {
  std::optional<decltype(make())> made;
  collectively(comm, [&] { made.emplace(make()); });
  return std::move(*made);
}

RunCheckpoints lock_directory(Comm& comm, const RunConfig& config, RunProgress* progress) {
  collectively(comm, [&] { make_directories(config.run.output_dir, Kind::kConfig); });
  return {comm, config, [progress] {
            // While the run trains, the disk's progress does not count: it would hide that a step hangs.
            if (progress != nullptr && waits_for_disk(progress->phase())) progress->tick();
          }};
}

RunRecords open_records(World& world, const RunConfig& config, OpenOptions& options, const RunTable& table,
                        const std::string& incarnation) {
  log::also_to(
      run_files::at(config.run.output_dir, run_files::kLog));  // the directory is locked: no other run writes there
  options.startup.done("lock");
  return {world,
          config,
          {.program = options.program,
           .command = options.command,
           .config_text = options.config_text,
           .settings = options.settings,
           .incarnation = incarnation,
           .total_steps = table.total_steps(),
           .startup = options.startup}};
}

}  // namespace

OpenRun::OpenRun(World& world, const RunConfig& config, const GlobalBatch& batch, OpenOptions opened)
    : options(std::move(opened)),
      table(made_collectively(world.comm(), [&] { return RunTable(config, batch); })),
      data(made_collectively(world.comm(), [&] { return RunData(config, table); })),
      checkpoints((options.startup.done("data"), lock_directory(world.comm(), config, options.progress))),
      records(open_records(world, config, options, table, checkpoints.incarnation())) {}

}  // namespace tokamak

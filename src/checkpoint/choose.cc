#include "checkpoint/choose.h"

#include <algorithm>

#include "base/file.h"
#include "base/log.h"
#include "comm/collective_error.h"
#include "comm/rank_zero.h"

namespace tokamak {

namespace {

constexpr const char* kNothingChanged =
    "Nothing was changed. Repair or restore a checkpoint, or start from scratch with another run.output_dir.";

std::string counted(const std::vector<int64_t>& steps) {
  return str(steps.size(), steps.size() == 1 ? " checkpoint" : " checkpoints");
}

// Rank 0 opens the checkpoint; all ranks verify it. Sets `reader`, or returns the problem.
std::string try_checkpoint(Comm& comm, const std::string& directory, const std::function<CheckpointReader()>& open,
                           const Tick& tick, std::optional<CheckpointReader>& reader) {
  try {
    reader.emplace(directory, text_of_rank_zero(comm, [&] { return open().manifest_text(); }));
  } catch (const SharedError& error) {
    if (error.kind() == Kind::kBug) throw;
    return error.what();  // an older checkpoint may serve
  }
  reader->on_progress(tick);
  const std::string problem = find_problem(comm, *reader);
  if (!problem.empty()) reader.reset();
  return problem;
}

// Fails if a start from scratch would bury checkpoints that were set aside.
void expect_fresh(Comm& comm, const CheckpointStore& store) {
  do_on_rank_zero(comm, [&] {
    const std::vector<std::string> aside = store.set_aside();
    if (!aside.empty()) {
      fail(Kind::kCheckpoint, str(store.directory(), " has no committed checkpoint, but ", join(aside, ", ")),
           kNothingChanged);
    }
    const std::vector<std::string> unfinished = store.unfinished();
    if (!unfinished.empty()) {
      log::warning(store.directory(), " has no committed checkpoint, only unfinished saves (", join(unfinished, ", "),
                   "): starting from the beginning");
    }
  });
}

}  // namespace

CheckpointReader choose_of(Comm& comm, const CheckpointStore& store, const std::vector<int64_t>& steps,
                           const Tick& tick) {
  std::vector<std::string> problems;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    std::optional<CheckpointReader> reader;
    const auto open = [&] { return store.open(*step); };
    const std::string problem = try_checkpoint(comm, store.path_of(*step), open, tick, reader);
    if (reader) {
      if (!problems.empty() && comm.rank() == 0) {
        log::warning("falling back from step ", steps.back(), " to step ", *step, ": ", reader->directory());
      }
      return *std::move(reader);
    }
    problems.push_back(problem);
    if (comm.rank() == 0) log::warning("checkpoint ", store.path_of(*step), " cannot be used: ", problem);
  }
  throw SharedError(Kind::kCheckpoint,
                    str(store.directory(), " holds ", counted(steps), " and none can be used: ", join(problems, "; ")),
                    kNothingChanged);
}

namespace {

std::optional<CheckpointReader> choose_newest(Comm& comm, const CheckpointStore& store, const Tick& tick) {
  const std::vector<int64_t> steps = values_of_rank_zero(comm, [&] { return store.steps(); });
  if (!steps.empty()) return choose_of(comm, store, steps, tick);
  expect_fresh(comm, store);
  return std::nullopt;
}

CheckpointReader choose_path(Comm& comm, const std::string& path, const Tick& tick) {
  std::optional<CheckpointReader> reader;
  const auto open = [&] { return CheckpointReader::open(path); };
  const std::string problem = try_checkpoint(comm, path, open, tick, reader);
  if (reader) return *std::move(reader);
  do_on_rank_zero(comm, [&] {
    const std::vector<int64_t> steps = is_directory(path) ? CheckpointStore(path).steps() : std::vector<int64_t>();
    fail(Kind::kCheckpoint, str("checkpoint.load names ", path, ", which cannot be used: ", problem),
         steps.empty() ? "Give the directory of one step, or 'auto' for the newest that verifies."
                       : str("It holds checkpoints; name one of them, such as ", path, "/", step_name(steps.back())));
  });
  TOKAMAK_UNREACHABLE();
}

}  // namespace

std::optional<CheckpointReader> choose_checkpoint(Comm& comm, const CheckpointStore& store, const std::string& load,
                                                  const Tick& tick) {
  if (load == "auto") return choose_newest(comm, store, tick);
  if (load != "none") return choose_path(comm, load, tick);
  const std::vector<int64_t> steps = values_of_rank_zero(comm, [&] { return store.steps(); });
  if (!steps.empty()) {
    throw SharedError(Kind::kCheckpoint,
                      str("checkpoint.load is 'none', but ", store.directory(), " holds ", counted(steps),
                          ", the newest of step ", steps.back()),
                      "Give this run another run.output_dir, or continue with checkpoint.load=auto.");
  }
  expect_fresh(comm, store);
  return std::nullopt;
}

CheckpointReader open_committed(Comm& comm, const CheckpointStore& store, int64_t step, const Tick& tick) {
  std::optional<CheckpointReader> reader;
  const auto open = [&] { return store.open(step); };
  const std::string problem = try_checkpoint(comm, store.path_of(step), open, tick, reader);
  if (reader) return *std::move(reader);
  throw SharedError(Kind::kCheckpoint, str(store.path_of(step), ", just committed, cannot be read back: ", problem),
                    "Mend the disk, then start again: training goes on from the newest checkpoint that verifies.");
}

CheckpointReader open_checkpoint_at(Comm& comm, const std::string& path) {
  const bool one = value_of_rank_zero(comm, [&] { return exists(path + "/" + kManifestName); });
  const CheckpointStore store = one ? CheckpointStore(parent_directory(path)) : store_at(path);
  std::optional<CheckpointReader> reader = choose_checkpoint(comm, store, one ? path : "auto");
  if (!reader) {
    throw SharedError(Kind::kCheckpoint, "there is no checkpoint in " + path,
                      "Give a directory step-NNNNNNNN, the directory 'checkpoints' that holds them, or a run's.");
  }
  return *std::move(reader);
}

}  // namespace tokamak

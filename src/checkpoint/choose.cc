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

[[noreturn]] void fail_everywhere(const std::string& what, const std::string& hint) {
  throw SharedError(Kind::kCheckpoint, what, hint);
}

// Rank 0 opens the checkpoint; all ranks verify it. Sets `reader`, or returns the problem.
std::string try_checkpoint(Comm& comm, const std::string& directory, const std::function<CheckpointReader()>& open,
                           const Tick& tick, std::optional<CheckpointReader>& reader) {
  // "=manifest", or "!problem": damage is not an error here, since an older checkpoint may serve.
  const std::string answer = text_of_rank_zero(comm, [&]() -> std::string {
    try {
      return str("=", open().manifest_text());
    } catch (const Error& error) {
      return str("!", error.what());
    }
  });
  if (answer[0] == '!') return answer.substr(1);
  reader.emplace(directory, std::string_view(answer).substr(1));
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

std::optional<CheckpointReader> choose_newest(Comm& comm, const CheckpointStore& store, const Tick& tick) {
  const std::vector<int64_t> steps = values_of_rank_zero(comm, [&] { return store.steps(); });
  if (steps.empty()) {
    expect_fresh(comm, store);
    return std::nullopt;
  }
  std::vector<std::string> problems;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    std::optional<CheckpointReader> reader;
    const std::string problem = try_checkpoint(
        comm, store.path_of(*step), [&] { return store.open(*step); }, tick, reader);
    if (reader) {
      if (!problems.empty() && comm.rank() == 0) {
        log::warning("falling back from step ", steps.back(), " to step ", *step, ": ", reader->directory());
      }
      return reader;
    }
    problems.push_back(problem);
    if (comm.rank() == 0) log::warning("checkpoint ", store.path_of(*step), " cannot be used: ", problem);
  }
  fail_everywhere(str(store.directory(), " holds ", steps.size(), steps.size() == 1 ? " checkpoint" : " checkpoints",
                      " and none can be used: ", join(problems, "; ")),
                  kNothingChanged);
}

CheckpointReader choose_path(Comm& comm, const std::string& path, const Tick& tick) {
  std::optional<CheckpointReader> reader;
  const std::string problem = try_checkpoint(
      comm, path, [&] { return CheckpointReader::open(path); }, tick, reader);
  if (reader) return *std::move(reader);
  fail_everywhere(str("checkpoint.load names ", path, ", which cannot be used: ", problem),
                  text_of_rank_zero(comm, [&]() -> std::string {
                    const std::vector<int64_t> steps =
                        is_directory(path) ? CheckpointStore(path).steps() : std::vector<int64_t>();
                    if (steps.empty()) return "Give the directory of one step, or 'auto' for the newest that verifies.";
                    return str("It holds checkpoints; name one of them, such as ", path, "/", step_name(steps.back()));
                  }));
}

}  // namespace

std::optional<CheckpointReader> choose_checkpoint(Comm& comm, const CheckpointStore& store, const std::string& load,
                                                  const Tick& tick) {
  if (load == "auto") return choose_newest(comm, store, tick);
  if (load != "none") return choose_path(comm, load, tick);
  const std::vector<int64_t> steps = values_of_rank_zero(comm, [&] { return store.steps(); });
  if (!steps.empty()) {
    fail_everywhere(str("checkpoint.load is 'none', but ", store.directory(), " holds ", steps.size(),
                        steps.size() == 1 ? " checkpoint" : " checkpoints", ", the newest of step ", steps.back()),
                    "Give this run another run.output_dir, or continue with checkpoint.load=auto.");
  }
  expect_fresh(comm, store);
  return std::nullopt;
}

CheckpointReader open_checkpoint_at(Comm& comm, const std::string& path) {
  const bool one = exists(path + "/" + kManifestName);
  const CheckpointStore store = one ? CheckpointStore(parent_directory(path)) : store_at(path);
  std::optional<CheckpointReader> reader = choose_checkpoint(comm, store, one ? path : "auto");
  if (!reader) {
    fail_everywhere("there is no checkpoint in " + path,
                    "Give a directory step-NNNNNNNN, the directory 'checkpoints' that holds them, or a run's.");
  }
  return *std::move(reader);
}

}  // namespace tokamak

#include "checkpoint/checkpointer.h"

#include <filesystem>
#include <sstream>

#include "base/file.h"
#include "base/log.h"
#include "checkpoint/choose.h"
#include "checkpoint/rank_zero.h"
#include "comm/collective_error.h"

namespace tokamak {

namespace {

std::string agreed_id(Comm& comm, std::string id) {
  comm.broadcast(id, 0);
  return id;
}

}  // namespace

Checkpointer::Checkpointer(Comm& comm, std::string directory, Setup setup)
    : comm_(comm),
      store_(std::move(directory)),
      setup_(std::move(setup)),
      committer_(store_, agreed_id(comm, setup_.incarnation.id)) {
  run_on_rank_zero(comm_, [&]() -> std::string {
    committer_.create_store();
    lock_ = std::make_unique<DirectoryLock>(store_.directory(), setup_.incarnation, setup_.lock_timeout);
    return "";
  });
}

std::optional<CheckpointReader> Checkpointer::resume() {
  TOKAMAK_CHECK(!resumed_);
  std::optional<CheckpointReader> reader = choose_checkpoint(comm_, store_, setup_.options.load);
  const std::string place = run_on_rank_zero(comm_, [&]() -> std::string {
    lock_->claim();
    committer_.remove_leftovers();
    if (!reader) return "";
    for (const int64_t step : store_.steps()) {
      if (step <= reader->manifest().point.state.step) continue;
      log::warning(store_.path_of(step), " is later than what this run starts from (", reader->directory(),
                   "); the first save sets it aside");
    }
    std::error_code ignored;
    const std::string own = store_.path_of(reader->manifest().point.state.step);
    return std::filesystem::equivalent(reader->directory(), own, ignored) ? "own" : "foreign";
  });
  if (place == "own") committed_ = reader->manifest().point.state.step;
  resumed_ = true;
  return reader;
}

SaveOutcome Checkpointer::save(const TrainingPoint& point, const ShardPlace& place, std::vector<UnitSlices> units) {
  begin_save(point, place, std::move(units));
  write_save();
  return finish_save();
}

int64_t Checkpointer::check_writers(const Job& job) const {
  auto entries = shard_entries(job.units);
  render_safetensors_header(entries, {});
  const std::string own = str(job.place.index, ' ', job.place.count, ' ', job.place.writes, ' ', entries.back().end,
                              ' ', job.point.state.step);
  std::vector<int> writers(static_cast<size_t>(job.place.count));
  for (const std::string& other : comm_.gather_all(own)) {
    std::istringstream words(other);
    int64_t index = 0, count = 0, writes = 0, bytes = 0, step = 0;
    words >> index >> count >> writes >> bytes >> step;
    TOKAMAK_CHECK(count == job.place.count && bytes == entries.back().end && step == job.point.state.step, other,
                  " and ", own);
    writers.at(static_cast<size_t>(index)) += static_cast<int>(writes);
  }
  for (const int count : writers) TOKAMAK_CHECK(count == 1, count, " ranks write one slice");
  return entries.back().end * job.place.count;
}

void Checkpointer::begin_save(const TrainingPoint& point, const ShardPlace& place, std::vector<UnitSlices> units) {
  TOKAMAK_CHECK(resumed_ && !job_, "a save begins after resume(), and after the last one has finished");
  job_.emplace();
  Job& job = *job_;
  job.point = point;
  job.place = place;
  job.units = std::move(units);
  TOKAMAK_CHECK(0 <= place.index && place.index < place.count, place.index, " of ", place.count);
  if (committed_ == point.state.step) {
    job.outcome.committed = true;
    return;
  }
  TOKAMAK_CHECK(!committed_ || *committed_ < point.state.step, "step ", point.state.step, " after ", *committed_);
  const int64_t bytes = check_writers(job);
  try {
    run_on_rank_zero(comm_, [&]() -> std::string {
      committer_.preflight(bytes);
      committer_.begin(point.state.step);
      return "";
    });
    job.write = true;
  } catch (const SharedError& error) {
    refuse(job, error.what());
  }
}

void Checkpointer::write_save() noexcept {
  Job& job = *job_;
  job.written = true;
  if (!job.write || !job.place.writes) return;
  try {
    const std::string name = shard_file_name(job.place.index, job.place.count);
    const std::string directory = committer_.unfinished_path(job.point.state.step);
    job.digest = write_shard(directory + "/" + name, job.place, job.point.state.step, job.units);
  } catch (const std::exception& error) {
    job.problem = error.what();
  }
}

SaveOutcome Checkpointer::refuse(Job& job, const std::string& reason) {
  job.outcome.reason = reason;
  job.outcome.seconds = job.watch.seconds();
  if (comm_.rank() == 0) {
    log::warning("checkpoint of step ", job.point.state.step, " was not written: ", reason,
                 " (older ones are as they were)");
  }
  return job.outcome;
}

CheckpointManifest Checkpointer::manifest_of(const Job& job, const std::vector<std::string>& reports) const {
  CheckpointManifest manifest;
  manifest.point = job.point;
  manifest.tool = TOKAMAK_VERSION;
  manifest.created = utc_timestamp();
  manifest.incarnation = setup_.incarnation.id;
  manifest.world_size = comm_.size();
  manifest.kinds = kinds_of(job.units);
  manifest.units = describe_units(job.units, job.place.count);
  manifest.files.resize(static_cast<size_t>(job.place.count));
  for (const std::string& report : reports) {
    if (report.empty()) continue;
    std::istringstream words(report);
    int index = 0;
    words >> index;
    SavedFile& file = manifest.files.at(static_cast<size_t>(index));
    file.name = shard_file_name(index, job.place.count);
    words >> file.bytes >> file.xxh3_128;
  }
  return manifest;
}

SaveOutcome Checkpointer::finish_save() {
  TOKAMAK_CHECK(job_ && job_->written, "finish_save() without begin_save() and write_save()");
  Job job = *std::move(job_);
  job_.reset();
  if (!job.write) return job.outcome;
  bool superseded = false;
  try {
    collectively(comm_, [&] {
      if (!job.problem.empty()) fail(Kind::kCheckpoint, job.problem);
    });
    const std::string own =
        job.place.writes ? str(job.place.index, ' ', job.digest.bytes, ' ', job.digest.xxh3_128) : "";
    const std::vector<std::string> reports = comm_.gather_all(own);
    const CheckpointManifest manifest = manifest_of(job, reports);
    job.outcome.bytes = manifest.total_bytes();
    superseded = run_on_rank_zero(comm_, [&] { return committer_.commit(manifest, *lock_) ? "" : "superseded"; }) ==
                 "superseded";
  } catch (const SharedError& error) {
    if (comm_.rank() == 0) committer_.discard(job.point.state.step);
    return refuse(job, error.what());
  }
  if (superseded) {
    if (comm_.rank() == 0) committer_.discard(job.point.state.step);
    throw SharedError(Kind::kCheckpoint, str("a later start of this job has taken over ", store_.directory()),
                      "This start was believed dead; it ends here, and has not touched the directory since.");
  }
  committed_ = job.point.state.step;
  job.outcome.committed = true;
  job.outcome.seconds = job.watch.seconds();
  if (comm_.rank() != 0) return job.outcome;
  committer_.retain(job.point.state.step, setup_.options.keep_latest);
  log::info("checkpoint of step ", job.point.state.step, " committed: ", store_.path_of(job.point.state.step), ", ",
            human_bytes(job.outcome.bytes), " in ", fixed(job.outcome.seconds, 1), " s");
  return job.outcome;
}

}  // namespace tokamak

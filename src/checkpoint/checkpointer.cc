#include "checkpoint/checkpointer.h"

#include <chrono>
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
  std::optional<CheckpointReader> reader = choose_checkpoint(comm_, store_, setup_.options.load, setup_.tick);
  const std::string place = run_on_rank_zero(comm_, [&]() -> std::string {
    lock_->claim();
    const std::vector<int64_t> later = committer_.take_over(reader ? reader->manifest().point.state.step : -1);
    if (!reader) return "";
    for (const int64_t step : later) {
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

void Checkpointer::begin_save(const TrainingPoint& point, const ShardPlace& place, std::vector<UnitSlices> units,
                              Retention retention) {
  TOKAMAK_CHECK(resumed_ && !job_, "a save begins after resume(), and after the last one has ended");
  job_ = std::make_unique<Job>();
  Job& job = *job_;
  job.point = point;
  job.place = place;
  job.units = std::move(units);
  job.retention = retention;
  TOKAMAK_CHECK(0 <= place.index && place.index < place.count, place.index, " of ", place.count);
  if (committed_ == point.state.step) {
    job.stage = Stage::kCommitting;
    job.verdict = Verdict::kCommitted;
    return;
  }
  TOKAMAK_CHECK(!committed_ || *committed_ < point.state.step, "step ", point.state.step, " after ", *committed_);
  job.bytes = check_writers(job);
  try {
    run_on_rank_zero(comm_, [&]() -> std::string {
      committer_.expect_space(job.bytes);  // before any rank has taken some of it
      return "";
    });
  } catch (const SharedError& error) {
    job.problem = error.what();
    return;
  }
  if (place.writes) job.work = std::async(std::launch::async, [&] { write(job); });
}

void Checkpointer::write(Job& job) noexcept {
  try {
    const int64_t step = job.point.state.step;
    if (comm_.rank() == 0) committer_.probe();
    committer_.begin(step);
    const std::string name = shard_file_name(job.place.index, job.place.count);
    job.digest = write_shard(committer_.unfinished_path(step) + "/" + name, job.place, step, job.units, setup_.tick);
  } catch (const std::exception& error) {
    job.problem = error.what();
  }
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

bool Checkpointer::work_has_ended(Waiting waiting) {
  std::future<void>& work = job_->work;
  const bool ended = !work.valid() || work.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  if (waiting == Waiting::kNo) return comm_.max(ended ? 0 : 1) == 0;
  if (!ended) work.wait();
  return true;  // what comes next is collective, and waits for the others
}

std::optional<SaveOutcome> Checkpointer::advance(Waiting waiting) {
  TOKAMAK_CHECK(job_, "no save has begun");
  if (job_->stage == Stage::kWriting) {
    if (!work_has_ended(waiting)) return std::nullopt;
    begin_settling();
  }
  if (!work_has_ended(waiting)) return std::nullopt;
  return end_save();
}

void Checkpointer::begin_settling() {
  Job& job = *job_;
  job.stage = Stage::kCommitting;
  CheckpointManifest manifest;
  try {
    collectively(comm_, [&] {
      if (!job.problem.empty()) fail(Kind::kCheckpoint, job.problem);
    });
    const std::string own =
        job.place.writes ? str(job.place.index, ' ', job.digest.bytes, ' ', job.digest.xxh3_128) : "";
    manifest = manifest_of(job, comm_.gather_all(own));
    job.bytes = manifest.total_bytes();
  } catch (const SharedError& error) {
    job.problem = error.what();
  }
  if (comm_.rank() != 0) return;
  job.work = std::async(std::launch::async, [&job, this, manifest = std::move(manifest)] { settle(job, manifest); });
}

void Checkpointer::settle(Job& job, const CheckpointManifest& manifest) noexcept {
  const int64_t step = job.point.state.step;
  try {
    if (!job.problem.empty()) {
      job.verdict = lock_->fence() == Fence::kAnothers ? Verdict::kSuperseded : Verdict::kRefused;
    } else {
      job.verdict = committer_.commit(manifest, *lock_) ? Verdict::kCommitted : Verdict::kSuperseded;
    }
  } catch (const std::exception& error) {
    job.problem = error.what();
    job.verdict = Verdict::kRefused;
  }
  job.seconds = job.watch.seconds();
  if (job.verdict != Verdict::kCommitted) {
    committer_.discard(step);
  } else if (job.retention == Retention::kPrune) {
    committer_.retain(step, setup_.options.keep_latest);
  }
}

SaveOutcome Checkpointer::end_save() {
  std::unique_ptr<Job> job = std::move(job_);
  const std::string answer = run_on_rank_zero(
      comm_, [&] { return str(static_cast<int>(job->verdict), ' ', job->seconds, ' ', job->problem); });
  const std::vector<std::string> words = split(answer, ' ');
  job->verdict = static_cast<Verdict>(std::stoi(words.at(0)));
  SaveOutcome outcome{.step = job->point.state.step, .seconds = std::stod(words.at(1))};
  if (job->verdict == Verdict::kSuperseded) {
    throw SharedError(Kind::kCheckpoint, str("a later start of this job has taken over ", store_.directory()),
                      "This start was believed dead; it ends here, and has not touched the directory since.");
  }
  if (job->verdict == Verdict::kRefused) {
    outcome.reason = answer.substr(words[0].size() + words[1].size() + 2);
    if (comm_.rank() == 0) {
      log::warning("checkpoint of step ", outcome.step, " was not written: ", outcome.reason,
                   " (older ones are as they were)");
    }
    return outcome;
  }
  outcome.committed = true;
  if (committed_ == outcome.step) return outcome;
  committed_ = outcome.step;
  outcome.bytes = job->bytes;
  if (comm_.rank() == 0) {
    log::info("checkpoint of step ", outcome.step, " committed: ", store_.path_of(outcome.step), ", ",
              human_bytes(outcome.bytes), " in ", fixed(outcome.seconds, 1), " s");
  }
  return outcome;
}

}  // namespace tokamak

#include "checkpoint/checkpointer.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/file.h"
#include "base/log.h"
#include "comm/collective_error.h"
#include "comm/rank_zero.h"

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
  do_on_rank_zero(comm_, [&] {
    committer_.create_store();
    lock_ = std::make_unique<DirectoryLock>(store_.directory(), setup_.incarnation, setup_.lock_timeout);
  });
}

void Checkpointer::give_up() {
  stop_reading();
  job_.reset();
  stop_reading_ = false;  // the next save is of another part of the run
}

std::optional<CheckpointReader> Checkpointer::resume() {
  TOKAMAK_CHECK(!resumed_);
  std::optional<CheckpointReader> reader = choose_checkpoint(comm_, store_, setup_.options.load, setup_.tick);
  const bool is_own = value_of_rank_zero(comm_, [&] {
    lock_->claim();
    committer_.take_over();
    // Only now: an earlier start could commit until its unfinished save was gone.
    const std::vector<int64_t>& later = committer_.abandon_after(reader ? reader->manifest().point.state.step : -1);
    if (!reader) return false;
    for (const int64_t step : later) {
      log::warning(store_.path_of(step), " is later than what this run starts from (", reader->directory(),
                   "); the first save sets it aside");
    }
    std::error_code ignored;
    const std::string own = store_.path_of(reader->manifest().point.state.step);
    return std::filesystem::equivalent(reader->directory(), own, ignored);
  });
  if (is_own) {
    committed_ = reader->manifest().point.state.step;
    committer_.has_read(*committed_, "");
  }
  resumed_ = true;
  return reader;
}

void Checkpointer::go_to(int64_t step) {
  TOKAMAK_CHECK(resumed_ && !job_, "a save is under way");
  const bool is_saved = value_of_rank_zero(comm_, [&] {
    committer_.abandon_after(step);
    return exists(store_.path_of(step));
  });
  committed_ = is_saved ? std::optional(step) : std::nullopt;
}

std::vector<int64_t> Checkpointer::steps() const {
  TOKAMAK_CHECK(resumed_ && !job_, "a save is under way");
  return values_of_rank_zero(comm_, [&] { return committer_.steps(); });
}

CheckpointReader Checkpointer::read_between(int64_t first, int64_t last) const {
  std::vector<int64_t> between = steps();
  std::erase_if(between, [&](int64_t step) { return step < first || step > last; });
  if (!between.empty()) return choose_of(comm_, store_, between, setup_.tick);
  throw SharedError(Kind::kCheckpoint, str(store_.directory(), " has no checkpoint of steps ", first, " to ", last),
                    "Nothing was changed.");
}

int64_t Checkpointer::check_writers(const Job& job) const {
  auto entries = shard_entries(job.units);
  render_safetensors_header(entries, {});
  struct Share {
    int64_t index, count, writes, bytes, step;
  };
  const Share own{job.place.index, job.place.count, job.place.writes, entries.back().end, job.point.state.step};
  std::vector<int64_t> writers(static_cast<size_t>(job.place.count));
  for (const Share& other : gather_values(comm_, own)) {
    const bool agrees = other.count == own.count && other.bytes == own.bytes && other.step == own.step;
    TOKAMAK_CHECK(agrees, other.count, " ranks, ", other.bytes, " bytes, step ", other.step, " and ", own.count, ", ",
                  own.bytes, ", ", own.step);
    writers.at(static_cast<size_t>(other.index)) += other.writes;
  }
  for (const int64_t count : writers) TOKAMAK_CHECK(count == 1, count, " ranks write one slice");
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
    if (comm_.rank() == 0) job.work = std::async(std::launch::async, [&] { choose_to_read(job); });
    return;
  }
  TOKAMAK_CHECK(!committed_ || *committed_ < point.state.step, "step ", point.state.step, " after ", *committed_);
  TOKAMAK_CHECK(!job.units.empty(), "step ", point.state.step, " is not committed, and there is nothing to write");
  job.bytes = check_writers(job);
  try {
    do_on_rank_zero(comm_, [&] { committer_.expect_space(job.bytes); });  // before a rank takes some of the space
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

CheckpointManifest Checkpointer::manifest_of(const Job& job, const std::vector<WrittenFile>& files) const {
  CheckpointManifest manifest;
  manifest.point = job.point;
  manifest.tool = TOKAMAK_VERSION;
  manifest.created = utc_timestamp();
  manifest.incarnation = setup_.incarnation.id;
  manifest.world_size = comm_.size();
  manifest.kinds = kinds_of(job.units);
  manifest.units = describe_units(job.units, job.place.count);
  manifest.files.resize(static_cast<size_t>(job.place.count));
  for (const WrittenFile& written : files) {
    if (written.index < 0) continue;
    manifest.files.at(static_cast<size_t>(written.index)) = {shard_file_name(written.index, job.place.count),
                                                             written.bytes,
                                                             {written.xxh3_128.begin(), written.xxh3_128.end()}};
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
  while (work_has_ended(waiting)) {
    switch (job_->stage) {
      case Stage::kWriting:
        begin_commit();
        break;
      case Stage::kCommitting:
        begin_reading();
        break;
      case Stage::kReading:
        begin_pruning();
        break;
      case Stage::kPruning:
        return end_save();
    }
  }
  return std::nullopt;
}

void Checkpointer::begin_commit() {
  Job& job = *job_;
  job.stage = Stage::kCommitting;
  CheckpointManifest manifest;
  try {
    collectively(comm_, [&] {
      if (!job.problem.empty()) fail(Kind::kCheckpoint, job.problem);
    });
    WrittenFile own{job.place.writes ? job.place.index : -1, job.digest.bytes, {}};
    std::copy_n(job.digest.xxh3_128.begin(), std::min(own.xxh3_128.size(), job.digest.xxh3_128.size()),
                own.xxh3_128.begin());
    manifest = manifest_of(job, gather_values(comm_, own));
    job.bytes = manifest.total_bytes();
  } catch (const SharedError& error) {
    job.problem = error.what();
  }
  if (comm_.rank() != 0) return;
  job.work = std::async(std::launch::async, [&job, this, manifest = std::move(manifest)] { commit(job, manifest); });
}

void Checkpointer::commit(Job& job, const CheckpointManifest& manifest) noexcept {
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
  if (job.verdict == Verdict::kCommitted) {
    choose_to_read(job);
  } else {
    committer_.discard(step);
  }
}

void Checkpointer::choose_to_read(Job& job) noexcept {
  if (job.retention == Retention::kKeepAll || stop_reading_) return;
  try {
    job.to_read = committer_.unread(job.point.state.step, setup_.options.keep_latest);
  } catch (const std::exception& error) {
    log::warning(error.what());  // after an error nothing is removed this time
  }
}

void Checkpointer::begin_reading() {
  learn_verdict();
  Job& job = *job_;
  job.stage = Stage::kReading;
  if (job.to_read.empty()) return;
  job.work = std::async(std::launch::async, [&job, this] {
    for (const int64_t step : job.to_read) job.found.push_back(read_share(step));
  });
}

// Rank 0 tells all ranks the outcome of the save.
void Checkpointer::learn_verdict() {
  Job& job = *job_;
  job.verdict = value_of_rank_zero(comm_, [&] { return job.verdict; });
  job.seconds = value_of_rank_zero(comm_, [&] { return job.seconds; });
  job.problem = text_of_rank_zero(comm_, [&] { return job.problem; });
  job.to_read = values_of_rank_zero(comm_, [&] { return job.to_read; });
  if (job.verdict == Verdict::kSuperseded) {
    job_.reset();
    throw SharedError(Kind::kCheckpoint, str("a later start of this job has taken over ", store_.directory()),
                      "This start was believed dead; it ends here, and has not touched the directory since.");
  }
  const int64_t step = job.point.state.step;
  if (job.verdict == Verdict::kRefused) {
    if (comm_.rank() == 0) {
      log::warning("checkpoint of step ", step, " was not written: ", job.problem, " (older ones are as they were)");
    }
  } else if (committed_ != step) {
    committed_ = step;
    if (comm_.rank() == 0) {
      log::info("checkpoint of step ", step, " committed: ", store_.path_of(step), ", ", human_bytes(job.bytes), " in ",
                fixed(job.seconds, 1), " s");
    }
  }
}

// '=': this rank's share of the files is sound; '?': it was not read; '!', then the fault: it is damaged.
std::string Checkpointer::read_share(int64_t step) const noexcept {
  struct GivenUp {};
  try {
    CheckpointReader reader = store_.open_manifest(step);
    reader.on_progress([this] {
      if (stop_reading_) throw GivenUp();
      call(setup_.tick);
    });
    const std::optional<FileProblem> problem = find_problem_of_share(reader, comm_, ReadFrom::kDisk);
    return problem ? "!" + problem->text : "=";
  } catch (const GivenUp&) {
    return "?";
  } catch (const std::exception& error) {
    return str("!", error.what());
  }
}

void Checkpointer::begin_pruning() {
  Job& job = *job_;
  job.stage = Stage::kPruning;
  if (job.verdict != Verdict::kCommitted || job.retention == Retention::kKeepAll) return;
  for (size_t i = 0; i < job.to_read.size(); ++i) {
    std::string worst = "=";
    for (const std::string& found : comm_.gather_all(job.found[i])) {
      if (worst[0] != '!' && found[0] != '=') worst = found;
    }
    if (comm_.rank() == 0 && worst[0] != '?') committer_.has_read(job.to_read[i], worst.substr(1));
  }
  if (comm_.rank() != 0) return;
  const int64_t step = job.point.state.step;
  job.work =
      std::async(std::launch::async, [this, step] { committer_.retain(step, setup_.options.keep_latest, *lock_); });
}

SaveOutcome Checkpointer::end_save() {
  const std::unique_ptr<Job> job = std::move(job_);
  const bool committed = job->verdict == Verdict::kCommitted;
  return {.step = job->point.state.step,
          .committed = committed,
          .reason = committed ? "" : job->problem,
          .bytes = committed ? job->bytes : 0,
          .seconds = job->seconds};
}

}  // namespace tokamak

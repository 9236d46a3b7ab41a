// A run's hold on its checkpoint directory: what it starts from, and its saves. A save that the disk refuses is not the
// end of training: it leaves the older checkpoints as they are and says why. The disk is used by a thread of each rank,
// so training goes on beside a save; there is never more than one. Comm is used by the caller's thread alone.
//
// A save is written by all ranks, committed by rank 0, and followed by the removal of older ones, but not before those
// that are to stay have been read back, by all ranks, and were sound: each rank a share of the files, each checkpoint
// once by a start. That costs a save's bytes again in reading, after the commit, and delays nothing but the next save.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "checkpoint/commit.h"
#include "checkpoint/lock.h"
#include "checkpoint/options.h"
#include "checkpoint/reader.h"
#include "checkpoint/shard_file.h"
#include "comm/comm.h"

namespace tokamak {

struct SaveOutcome {
  int64_t step = 0;
  bool committed = false;
  std::string reason;  // why not; the same on every rank
  int64_t bytes = 0;   // of all files; 0: it was there already
  double seconds = 0;  // from begin_save() until it was durable, or refused
};

// Whether a commit is followed by the removal of checkpoints beyond CheckpointOptions::keep_latest.
enum class Retention { kPrune, kKeepAll };

class Checkpointer {
 public:
  struct Setup {
    CheckpointOptions options;
    Incarnation incarnation = current_incarnation();  // rank 0's counts
    double lock_timeout = 10;                         // seconds to wait for another run to end
    Tick tick;                                        // of files that are read and written
  };

  // Collective. Makes the directory and locks it; SharedError(kCheckpoint) if another run holds it. `comm` outlives
  // this.
  Checkpointer(Comm& comm, std::string directory, Setup setup);
  ~Checkpointer();

  // Collective, once, before the first save: as choose_checkpoint with options.load. Then the directory is this run's,
  // and leftovers of earlier starts are removed.
  std::optional<CheckpointReader> resume();

  // Collective: starts to write a checkpoint, after the last save has ended. The slices stay as they are until this one
  // has. `place` and `units` describe this rank; each slice has exactly one writer. A step that is already committed is
  // not written again, and needs no `units`; what is beyond keep_latest goes all the same.
  void begin_save(const TrainingPoint& point, const ShardPlace& place, std::vector<UnitSlices> units,
                  Retention retention = Retention::kPrune);
  bool saving() const { return job_ != nullptr; }
  // Collective, while saving(): moves the save on without waiting for the disk; how it has ended, if it has. Every disk
  // error is a refusal, logged by rank 0. SharedError(kCheckpoint) only if a later start of the job has taken the
  // directory over.
  std::optional<SaveOutcome> poll_save() { return advance(Waiting::kNo); }
  // The same, but waits for the end.
  SaveOutcome finish_save() { return advance(Waiting::kYes).value(); }

  // From here on nothing is read back, as the process is to end: what this start has not read does not count, and
  // stays. Each rank for itself.
  void stop_reading() { stop_reading_ = true; }

  // begin_save() and finish_save().
  SaveOutcome save(const TrainingPoint& point, const ShardPlace& place, std::vector<UnitSlices> units);

  const CheckpointStore& store() const { return store_; }

 private:
  enum class Waiting { kNo, kYes };
  enum class Stage { kWriting, kCommitting, kReading, kPruning };  // by all ranks, by rank 0, by all, by rank 0
  enum class Verdict { kCommitted, kRefused, kSuperseded };
  struct Job {
    TrainingPoint point;
    ShardPlace place;
    std::vector<UnitSlices> units;
    Retention retention = Retention::kPrune;
    int64_t bytes = 0;  // of all files
    Stopwatch watch;
    Stage stage = Stage::kWriting;
    FileDigest digest;    // of this rank's file
    std::string problem;  // of this rank's file; then of the save
    Verdict verdict = Verdict::kRefused;
    double seconds = 0;
    std::vector<int64_t> to_read;    // steps whose soundness decides what goes
    std::vector<std::string> found;  // there, by this rank
    std::future<void> work;          // last, so that its end is waited for before the rest goes
  };

  std::optional<SaveOutcome> advance(Waiting waiting);
  bool work_has_ended(Waiting waiting);  // on all ranks
  void begin_commit();
  void begin_reading();
  void learn_verdict();
  void begin_pruning();
  SaveOutcome end_save();

  // On the thread of `job.work`.
  void write(Job& job) noexcept;
  void commit(Job& job, const CheckpointManifest& manifest) noexcept;
  void choose_to_read(Job& job) noexcept;
  std::string read_share(int64_t step) const noexcept;

  int64_t check_writers(const Job& job) const;  // returns the bytes of all files
  // A rank's file, as it travels to the others.
  struct WrittenFile {
    int index = -1;  // -1: the rank writes none
    int64_t bytes = 0;
    std::array<char, 32> xxh3_128{};  // hex digits
  };
  CheckpointManifest manifest_of(const Job& job, const std::vector<WrittenFile>& files) const;

  Comm& comm_;
  CheckpointStore store_;
  Setup setup_;
  std::unique_ptr<DirectoryLock> lock_;  // rank 0
  Committer committer_;                  // used by rank 0; the others ask it for names
  std::optional<int64_t> committed_;     // newest step of this run that is in the store
  std::atomic<bool> stop_reading_{false};
  std::unique_ptr<Job> job_;
  bool resumed_ = false;
};

}  // namespace tokamak

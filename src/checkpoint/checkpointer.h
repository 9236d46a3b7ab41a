// A run's checkpoint directory: the checkpoint that it starts from, and its saves. If the disk refuses a save, training
// continues, the older checkpoints stay, and the outcome has the reason. A thread of each rank uses the disk, so
// training continues during a save; there is never more than one. Only the caller's thread uses Comm.
//
// All ranks write a save, and rank 0 commits it and removes older ones. First the ranks read back the checkpoints that
// stay, each a share of the files. A start reads each checkpoint back at most once. Reading back reads as many bytes as
// a save writes, comes after the commit, and delays only the next save.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "checkpoint/choose.h"
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
  std::string reason;  // why it was not committed; the same text on every rank
  int64_t bytes = 0;   // of all files; 0: the checkpoint existed already
  double seconds = 0;  // from begin_save() until it was durable or refused
};

// Whether a commit is followed by the removal of checkpoints beyond CheckpointOptions::keep_latest.
enum class Retention { kPrune, kKeepAll };

class Checkpointer {
 public:
  struct Setup {
    CheckpointOptions options;
    Incarnation incarnation = current_incarnation();  // rank 0's is used
    double lock_timeout = 10;                         // seconds to wait for another run to end
    Tick tick;                                        // called as files are read and written
  };

  // Collective. Creates the directory and locks it; SharedError(kCheckpoint) if another run holds it. `comm` outlives
  // this.
  Checkpointer(Comm& comm, std::string directory, Setup setup);
  ~Checkpointer() { give_up(); }

  // Collective, once, before the first save: choose_checkpoint with options.load. Then takes over the directory and
  // removes leftovers of earlier starts.
  std::optional<CheckpointReader> resume();

  // Collective, between two saves: the run continues from this step. Its own checkpoint of the step, if there is one,
  // holds its state. Checkpoints of later steps are abandoned: the next save sets them aside.
  void go_to(int64_t step);
  // The newest step of this run that is in the store.
  std::optional<int64_t> committed() const { return committed_; }

  // Collective: starts to write a checkpoint, after the last save has ended. The slices must not change until this one
  // has. `place` and `units` describe this rank; each slice has exactly one writer. A step that is already committed is
  // not written again, and needs no `units`; checkpoints beyond keep_latest are removed all the same.
  void begin_save(const TrainingPoint& point, const ShardPlace& place, std::vector<UnitSlices> units,
                  Retention retention = Retention::kPrune);
  bool saving() const { return job_ != nullptr; }
  // Collective, while saving(): advances the save without waiting for the disk, and returns its outcome if it has
  // ended. Every disk error is a refusal, logged by rank 0. SharedError(kCheckpoint) only if a later start of the job
  // has taken over the directory.
  std::optional<SaveOutcome> poll_save() { return advance(Waiting::kNo); }
  // As poll_save(), but waits for the save to end.
  SaveOutcome finish_save() { return advance(Waiting::kYes).value(); }

  // Stops reading back, since the process will end. Checkpoints not read back are kept. Each rank calls it for itself.
  void stop_reading() { stop_reading_ = true; }
  // Ends a save that has no outcome: waits for its write, and stops reading. Each rank calls it for itself.
  void give_up();

  // Collective, between two saves: the committed checkpoint, for the next part of the run to read its state from.
  CheckpointReader read_committed() const { return open_committed(comm_, store_, committed_.value(), setup_.tick); }

  // Likewise the steps of the store that this run can go back to, ascending: those that it has not abandoned.
  std::vector<int64_t> steps() const;
  // Likewise the newest of steps `first` to `last` that verifies, of those. SharedError(kCheckpoint) if there is none.
  CheckpointReader read_between(int64_t first, int64_t last) const;

  const CheckpointStore& store() const { return store_; }
  const std::string& incarnation() const { return committer_.incarnation(); }  // rank 0's

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
    std::string problem;  // of this rank's file, later of the save
    Verdict verdict = Verdict::kRefused;
    double seconds = 0;
    std::vector<int64_t> to_read;    // steps to read back before older ones are deleted
    std::vector<std::string> found;  // what read_share() returned for each
    std::future<void> work;          // last, so that its end is waited for before the rest is destroyed
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
  std::unique_ptr<DirectoryLock> lock_;  // on rank 0
  Committer committer_;                  // used by rank 0; other ranks only use its names
  std::optional<int64_t> committed_;
  std::atomic<bool> stop_reading_{false};
  std::unique_ptr<Job> job_;
  bool resumed_ = false;
};

}  // namespace tokamak

// A run's hold on its checkpoint directory: what it starts from, and its saves. A save that the disk refuses is not the
// end of training: it leaves the older checkpoints as they are and says why.
#pragma once

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
  bool committed = false;
  std::string reason;  // why not; the same on every rank
  int64_t bytes = 0;   // of all files
  double seconds = 0;
};

class Checkpointer {
 public:
  struct Setup {
    CheckpointOptions options;
    Incarnation incarnation = current_incarnation();  // rank 0's counts
    double lock_timeout = 10;                         // seconds to wait for another run to end
  };

  // Collective. Makes the directory and locks it; SharedError(kCheckpoint) if another run holds it. `comm` outlives
  // this.
  Checkpointer(Comm& comm, std::string directory, Setup setup);

  // Collective, once, before the first save: as choose_checkpoint with options.load. Then the directory is this run's,
  // and leftovers of earlier starts are removed.
  std::optional<CheckpointReader> resume();

  // Collective: writes a checkpoint and returns when it is durable, or refused. Every disk error is a refusal, logged
  // by rank 0. A step that is already committed is not written again. SharedError(kCheckpoint) only if a later start of
  // the job has taken the directory over. `place` and `units` describe this rank; each slice has exactly one writer.
  SaveOutcome save(const TrainingPoint& point, const ShardPlace& place, std::vector<UnitSlices> units);

  // The same in three parts, for saving beside training: begin and finish are collective; write is local, calls no Comm
  // and may run on another thread while the slices (a snapshot) stay as they are. All three are always called.
  void begin_save(const TrainingPoint& point, const ShardPlace& place, std::vector<UnitSlices> units);
  void write_save() noexcept;
  SaveOutcome finish_save();

  const CheckpointStore& store() const { return store_; }

 private:
  struct Job {
    TrainingPoint point;
    ShardPlace place;
    std::vector<UnitSlices> units;
    bool write = false;    // preflight has passed, and the step is new
    bool written = false;  // write_save() has run
    FileDigest digest;     // of this rank's file
    std::string problem;   // of this rank's write
    SaveOutcome outcome;
    Stopwatch watch;
  };

  int64_t check_writers(const Job& job) const;  // returns the bytes of all files
  CheckpointManifest manifest_of(const Job& job, const std::vector<std::string>& reports) const;
  SaveOutcome refuse(Job& job, const std::string& reason);

  Comm& comm_;
  CheckpointStore store_;
  Setup setup_;
  std::unique_ptr<DirectoryLock> lock_;  // rank 0
  Committer committer_;                  // used by rank 0; the others ask it for names
  std::optional<int64_t> committed_;     // newest step of this run that is in the store
  std::optional<Job> job_;
  bool resumed_ = false;
};

}  // namespace tokamak

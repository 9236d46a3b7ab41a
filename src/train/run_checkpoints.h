// A run's state and its checkpoints: which one a start resumes from, when the state is saved, and what is reported. A
// save goes on while the run trains; the run waits for its last save. All methods that are not const are collective,
// unless they say otherwise.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "engine/engine.h"
#include "train/open_run.h"
#include "train/run_config.h"
#include "train/save_clock.h"
#include "train/state_slices.h"

namespace tokamak {

// If the checkpoint lacks some of the optimizer's state, this is an error, or all of the state is zero.
enum class MissingState { kRefuse, kStartOver };

// Loads the weights and the optimizer's state of a checkpoint into an engine that has committed. Returns whether the
// optimizer's state starts over. Collective. SharedError(kCheckpoint), also by kRefuse.
bool load_weights(Comm& comm, CheckpointReader& reader, Engine& engine, MissingState missing = MissingState::kRefuse);

class RunCheckpoints {
 public:
  // `verify_state` is called before the state is copied, and throws if it is corrupt. All that this refers to outlives
  // it.
  RunCheckpoints(Comm& comm, Engine& engine, const RunConfig& config, OpenRun& open,
                 std::function<void()> verify_state);
  ~RunCheckpoints() { open_.checkpointer.give_up(); }  // its thread reads the snapshot
  RunCheckpoints(const RunCheckpoints&) = delete;
  RunCheckpoints& operator=(const RunCheckpoints&) = delete;

  // Once, after engine.commit(). Loads the weights and the optimizer's state of the point at which `open` is, and
  // returns the run's state there; or draws weights from run.seed, at step 0. `check` gets the point and the path of
  // the checkpoint that a start resumes from, before its weights are read.
  using Check = std::function<void(const TrainingPoint& saved, const std::string& checkpoint)>;
  RunState load_or_initialize(const Check& check);

  // The run continues from this state. Its own checkpoint of the step, if there is one, holds it. Checkpoints of later
  // steps are abandoned.
  void go_to(const RunState& state);

  // After each step, on this rank alone: starts the thread that allocates the snapshot's memory, or throws its error
  // (state_slices.h).
  void take_snapshot_memory() { snapshot_->take_memory(); }

  void advance();  // goes on with the save under way, if any, without waiting for the disk
  bool due(const RunState& state) { return clock_.due(state, comm_); }
  // With a `doubt` (why this state may be no good), it is put off: it would push out an older save, perhaps the last
  // good one. Returns whether a save has begun.
  bool save(const RunState& state, const std::string& doubt);
  // Ends the run's saves. With a doubt, it pushes out none. SharedError(kCheckpoint) if the last one is refused.
  void save_last(const RunState& state, const std::string& doubt);
  std::optional<SaveOutcome> finish();  // waits for the save under way, if there is one

  // These wait for the save under way, and know no checkpoint that this run has abandoned.
  // The newest checkpoint of a step before `step`; empty if there is none.
  std::string newest_before(int64_t step);
  // Whether there is one that the open row of stages can go back to.
  bool has_before(int64_t step);
  // Loads the newest one that verifies, and returns its state. SharedError(kCheckpoint) if there is none.
  RunState load_before(int64_t step);

 private:
  Phase phase() const;
  bool saved(const RunState& state) const;
  // Loads what a checkpoint of this run holds. `state` is the one at its point, and becomes this config's.
  void load(CheckpointReader& reader, RunState& state, bool logs);
  // Copies the state to the snapshot. Without one (checkpoint.async: false, on a CPU), the state must not change until
  // the save has ended.
  void begin(const RunState& state, Retention retention);
  void report(const SaveOutcome& outcome);

  Comm& comm_;
  Engine& engine_;
  const RunConfig& config_;
  OpenRun& open_;
  const std::function<void()> verify_state_;
  std::optional<StateSnapshot> snapshot_;
  SaveClock clock_;
  double stall_ = 0;  // seconds that training has waited for the save under way, and those of its copy
  double copy_ = 0;
};

}  // namespace tokamak

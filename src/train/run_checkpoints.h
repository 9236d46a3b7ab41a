// A run's state and its checkpoints: from which one a start resumes, when and how the state is saved. The constructor
// and all methods that are not const are collective, unless they say otherwise.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "checkpoint/checkpointer.h"
#include "data/sample_source.h"
#include "engine/engine.h"
#include "train/run_config.h"
#include "train/run_table.h"
#include "train/save_clock.h"
#include "train/state_slices.h"

namespace tokamak {

// The weights and the optimizer's state of a checkpoint, into an engine that has committed. Collective.
void load_weights(Comm& comm, CheckpointReader& reader, Engine& engine);

class RunCheckpoints {
 public:
  // Locks the directory of checkpoints in run.output_dir; SharedError(kCheckpoint) if another run holds it. `comm`
  // outlives this. `tick`: of files that are read and written, on any thread.
  RunCheckpoints(Comm& comm, const RunConfig& config, Tick tick);

  // This start's, as checkpoints and records name it; rank 0's counts.
  const std::string& incarnation() const { return incarnation_.id; }

  // Once, after engine.commit(); `engine` outlives this. Loads the weights and the optimizer's state of the checkpoint
  // that checkpoint.load names, and returns the run's state there; or draws weights from `seed`, at step 0. `check`
  // gets the config and the path of the checkpoint before its weights are read.
  using Check = std::function<void(const std::string& saved_config, const std::string& checkpoint)>;
  RunState load_or_initialize(Engine& engine, const SampleSource& data, const RunTable& table, int64_t seed,
                              const Check& check);

  // The run continues from this state, which its own checkpoint of the step holds, if there is one. No save is under
  // way. Checkpoints of later steps are abandoned.
  void go_to(const RunState& state);

  bool due(const RunState& state) { return clock_.due(state, comm_); }
  // Whether nothing would be lost without a save: a checkpoint holds this state, or no step is done.
  bool saved(const RunState& state) const { return state.step == 0 || checkpointer_.committed() == state.step; }
  void put_off(const RunState& state) { clock_.restart(state); }  // a save that was due: an interval later

  // After each step, on this rank alone: starts the thread that takes the snapshot's memory, or throws its error
  // (state_slices.h).
  void take_snapshot_memory() { snapshot_->take_memory(); }

  // As Checkpointer's. A save begins with a copy of the state, the snapshot. Without one (checkpoint.async: false, on a
  // CPU), the state must not change until the save has ended. Returns the seconds of the copy and of the wait for its
  // memory.
  double begin_save(const TrainingPoint& point, Retention retention);
  bool saving() const { return checkpointer_.saving(); }
  std::optional<SaveOutcome> poll_save() { return checkpointer_.poll_save(); }
  SaveOutcome finish_save() { return checkpointer_.finish_save(); }
  void stop_reading() { checkpointer_.stop_reading(); }

  // The newest checkpoint of a step before `step`; empty if there is none.
  std::string newest_before(int64_t step) const;

  std::string path_of(int64_t step) const { return checkpointer_.store().path_of(step); }

 private:
  Comm& comm_;
  Incarnation incarnation_;
  std::optional<StateSnapshot> snapshot_;  // outlives the checkpointer, whose thread reads it
  Checkpointer checkpointer_;
  SaveClock clock_;
};

}  // namespace tokamak

// A run's state and its checkpoints: what a start goes on from, and when and how the state is saved. The constructor and
// all methods that are not const are collective.
#pragma once

#include <optional>
#include <string>

#include "checkpoint/checkpointer.h"
#include "data/sample_source.h"
#include "engine/engine.h"
#include "train/batch_shape.h"
#include "train/run_config.h"
#include "train/save_clock.h"
#include "train/state_slices.h"

namespace tokamak {

class RunCheckpoints {
 public:
  // Locks the directory of checkpoints in run.output_dir; SharedError(kCheckpoint) if another run holds it. `comm`
  // outlives this.
  RunCheckpoints(Comm& comm, const RunConfig& config);

  // This start's, as checkpoints and records name it; rank 0's counts.
  const std::string& incarnation() const { return incarnation_.id; }

  // Once, after engine.commit(); `engine` outlives this. The weights and the optimizer's state of the checkpoint that
  // checkpoint.load names, and the run's state there; or weights drawn from `seed`, at step 0.
  RunState load_or_initialize(Engine& engine, const SampleSource& data, const GlobalBatch& batch, int64_t seed);

  bool due(const RunState& state) { return clock_.due(state, comm_); }
  bool saved(const RunState& state) const { return clock_.saved(state); }
  SaveOutcome save(const TrainingPoint& point);

  std::string path_of(const RunState& state) const { return checkpointer_.store().path_of(state.step); }

 private:
  Comm& comm_;
  Incarnation incarnation_;
  Checkpointer checkpointer_;
  std::optional<HostState> host_state_;
  SaveClock clock_;
};

}  // namespace tokamak

// Looks for silent data corruption if the config asks for it: gradients computed twice (gradient_check.h), state
// between updates (state_guard.h). If a third computation does not settle it, all ranks throw an error that names the
// newest sound checkpoint. All methods are collective.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/loader.h"
#include "train/gradient_check.h"
#include "train/run_checkpoints.h"
#include "train/state_guard.h"

namespace tokamak {

// One verdict of all ranks on corruption that some of them have found.
struct Corruption {
  std::string what;                // "rank 1 (node7): the loss; layer.2"; "" where there is none
  std::vector<int> ranks;          // where it happened
  std::vector<std::string> hosts;  // of these ranks, each once
};

// Collective. `own` names parts that this rank computed wrong, `received` parts of sums over the ranks. `received` is
// used only if no rank names parts of its own: one rank's error is in the sums of all.
Corruption find_corruption(Comm& comm, const std::string& own, const std::string& received = "");

class CorruptionChecks {
 public:
  // `engine` has committed. SharedError(kConfig) if the device does not compute the same bits twice. All that this
  // refers to outlives it.
  CorruptionChecks(Comm& comm, Engine& engine, const RunConfig& config, OpenRun& open, RunCheckpoints& checkpoints);

  void go_to(int64_t step);  // declares the present state, after this step, sound

  bool recompute_due(int64_t step) const;
  // As compute_gradients() with `loader`. `here` makes another loader that begins with the same step.
  double gradients(int64_t step, Loader& loader, const LoaderOptions& here);
  StateGuard* guard() { return guard_ ? &*guard_ : nullptr; }
  void see_outcome(int64_t step);   // called once the outcome of this step has arrived
  void verify_state(int64_t step);  // called between the updates of this step and the next

 private:
  void compute_again(int64_t step, Loader& loader, const LoaderOptions& here, const Corruption& corruption);
  void end_if_corrupt(const Corruption& corruption, const std::string& what, int64_t sound_step);
  void record(const Corruption& corruption, const std::string& text);

  Comm& comm_;
  Engine& engine_;
  const RunConfig& config_;
  OpenRun& open_;
  RunCheckpoints& checkpoints_;
  std::optional<GradientCheck> gradient_check_;
  std::optional<StateGuard> guard_;
  std::vector<std::string> blamed_hosts_;  // blamed when a step was computed again
  int64_t sound_step_ = 0;                 // its gradients were the same twice, or go_to() named it
};

}  // namespace tokamak

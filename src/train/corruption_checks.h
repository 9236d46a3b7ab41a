// Looks for silent data corruption where the config asks for it: gradients computed twice (gradient_check.h), state
// between updates (state_guard.h). If a third computation does not settle it, all ranks throw an error that names
// the newest sound checkpoint. All methods are collective.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/loader.h"
#include "train/corruption.h"
#include "train/gradient_check.h"
#include "train/run_saves.h"
#include "train/state_guard.h"

namespace tokamak {

class CorruptionChecks {
 public:
  struct Setup {
    Comm& comm;
    Engine& engine;  // committed
    const RunConfig& config;
    RunRecords& records;
    RunSaves& saves;
    RunCheckpoints& checkpoints;
    const SampleSource& data;
    RunProgress* progress = nullptr;
  };
  // SharedError(kConfig) where the device does not compute the same bits twice. All that `setup` refers to outlives
  // this.
  explicit CorruptionChecks(Setup setup);

  void go_to(int64_t step);  // the state as it stands, after this step, is sound

  bool recompute_due(int64_t step) const;
  // As compute_gradients() with `loader`, whose next step `here` describes.
  double gradients(int64_t step, Loader& loader, const LoaderOptions& here);
  StateGuard* guard() { return guard_ ? &*guard_ : nullptr; }
  void see_outcome(int64_t step);   // once the outcome of this step has arrived
  void verify_state(int64_t step);  // between the updates of this step and the next

 private:
  void compute_again(int64_t step, Loader& loader, const LoaderOptions& here, const Corruption& corruption);
  void end_if_corrupt(const Corruption& corruption, const std::string& what, int64_t sound_step);
  void record(const Corruption& corruption, const std::string& text);

  Setup setup_;
  std::optional<GradientCheck> gradient_check_;
  std::optional<StateGuard> guard_;
  std::vector<std::string> blamed_hosts_;  // for a step that was computed again
  int64_t sound_step_ = 0;                 // its gradients were the same twice, or go_to() named it
};

}  // namespace tokamak

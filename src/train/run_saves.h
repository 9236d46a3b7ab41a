// When a run saves, and what it reports of its saves. A save goes on while the run trains; the last one is waited for.
// All methods that are not const are collective.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "resilience/progress.h"
#include "train/run_checkpoints.h"
#include "train/run_records.h"
#include "train/run_table.h"

namespace tokamak {

class RunSaves {
 public:
  struct Setup {
    RunCheckpoints& checkpoints;
    RunRecords& records;
    const RunTable& table;
    const SampleSource& data;
    RunProgress* progress = nullptr;
    std::string config_text;
    int64_t seed = 0;
    CheckpointOptions options;
    // Called before the state is copied; throws where it is corrupt.
    std::function<void()> verify_state;
  };
  explicit RunSaves(Setup setup) : setup_(std::move(setup)) {}  // all that it refers to outlives this

  // As RunCheckpoints::go_to, after the save under way, if there is one.
  void go_to(const RunState& state);

  // Moves the save under way on; whether the next one is due.
  bool due(const RunState& state);
  // The last `bad_steps` were not finite. Then the save is put off: it would push out an older one, perhaps the last
  // that is good.
  void save(const RunState& state, int64_t bad_steps);
  // Ends the run's saves. SharedError(kCheckpoint) if the last one is refused.
  void save_last(const RunState& state, int64_t bad_steps);
  std::optional<SaveOutcome> finish();  // of the save under way, if there is one

 private:
  Phase phase() const;
  void begin(const RunState& state, Retention retention);
  void report(const SaveOutcome& outcome);

  Setup setup_;
  double stall_ = 0;  // seconds that training has waited for the save under way, and those of its copy
  double copy_ = 0;
};

}  // namespace tokamak

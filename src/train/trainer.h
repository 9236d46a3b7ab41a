// A training run, from its config to its last checkpoint. Construction opens the data, plans and takes memory, and
// loads or initialises the weights; run() trains. Every phase that can fail does so on all ranks alike
// (comm/collective_error.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "comm/world.h"
#include "data/loader.h"
#include "monitor/monitor.h"
#include "optim/schedule.h"
#include "resilience/progress.h"
#include "train/bad_steps.h"
#include "train/run_checkpoints.h"
#include "train/run_config.h"
#include "train/run_data.h"
#include "train/run_plan.h"
#include "train/step.h"
#include "train/step_trace.h"
#include "train/stop_signal.h"

namespace tokamak {

enum class RunEnd { kDone, kStopped };

struct TrainerOptions {
  std::string config_text;  // the config as config/ prints it, for the run directory and the checkpoints
  // Takes training.evals (src/eval does). Collective.
  std::function<std::vector<NamedValue>(Engine&)> evals;
  int64_t stop_at_step = 0;         // save and stop after this step, as on a signal; 0: never
  RunProgress* progress = nullptr;  // told of phases and steps; outlives the trainer; nullptr: nobody watches
};

class Trainer {
 public:
  // Collective; `config` is complete (run_plan.h). SharedError where the run cannot start.
  Trainer(World& world, Backend& backend, const StopSignal& stop, RunConfig config, TrainerOptions options);
  ~Trainer();

  RunEnd run();

 private:
  int64_t take_memory(World& world, Backend& backend, const GlobalBatch& batch);  // returns the bytes in use after it
  void start_monitor(int64_t committed_bytes);

  void train_step();
  TokenBatch next_batch();
  void read_outcomes(int64_t leave);  // of finished steps, but for the last `leave`
  void validate_if_due();
  void take_evals_if_due();
  void save_if_due();
  std::string save();  // why the state is not saved; empty where it is
  void save_or_fail();
  bool due(int64_t interval) const { return finished() || (interval > 0 && state_.step % interval == 0); }
  bool finished() const { return state_.step >= run_.shape.total_steps; }
  bool should_stop();
  void report_memory() const;

  Comm& comm_;                       // what the ranks agree by
  std::unique_ptr<Comm> data_comm_;  // what their tensors travel by
  const StopSignal& stop_;
  const RunConfig config_;
  const TrainerOptions options_;

  std::optional<RunData> data_;
  PlannedRun run_;             // its memory is taken
  int64_t planned_bytes_ = 0;  // of the device, with what the program had before
  std::optional<RunCheckpoints> checkpoints_;
  std::optional<Schedule> schedule_;
  std::optional<Loader> loader_;
  std::optional<StepReader> reader_;
  std::optional<StepTrace> trace_;
  BadSteps bad_steps_;
  std::optional<Monitor> monitor_;

  RunState state_;
};

}  // namespace tokamak

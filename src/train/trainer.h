// A training run, from its config to its last checkpoint. Construction opens the data, plans and takes memory, and
// loads or initialises the weights; run() trains. Every phase that can fail does so on all ranks alike
// (comm/collective_error.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "checkpoint/checkpointer.h"
#include "comm/world.h"
#include "data/loader.h"
#include "data/sample_source.h"
#include "monitor/monitor.h"
#include "optim/schedule.h"
#include "train/assembly.h"
#include "train/bad_steps.h"
#include "train/batch_shape.h"
#include "train/evaluator.h"
#include "train/memory_check.h"
#include "train/run_config.h"
#include "train/state_slices.h"
#include "train/step.h"
#include "train/stop_signal.h"

namespace tokamak {

enum class RunEnd { kDone, kStopped };

struct TrainerOptions {
  std::string config_text;  // the config as config/ prints it, for the run directory and the checkpoints
  // Takes training.evals (src/eval does). Collective.
  std::function<std::vector<NamedValue>(Assembly&)> evals;
  int64_t stop_at_step = 0;  // save and stop after this step, as on a signal; 0: never
};

class Trainer {
 public:
  // Collective; `config` is complete (run_plan.h). SharedError where the run cannot start.
  Trainer(World& world, Backend& backend, const StopSignal& stop, RunConfig config, TrainerOptions options);
  ~Trainer();

  RunEnd run();

 private:
  std::string checkpoint_directory() const;
  CheckpointOptions checkpoint_options() const;
  void open_data(const GlobalBatch& batch);
  void write_run_directory();
  void build(const GlobalBatch& batch, const MemoryShare& memory);  // plan, and check that it fits
  void load_or_initialize();
  void start_monitor();

  void train_step();
  void read_outcomes(int64_t leave);  // of finished steps, but for the last `leave`
  void validate_if_due();
  void take_evals_if_due();
  bool due(int64_t interval) const { return finished() || (interval > 0 && state_.step % interval == 0); }
  void save_if_due();
  void save();
  void save_or_fail();
  bool finished() const { return state_.step >= shape_.total_steps; }
  bool should_stop();
  int64_t planned_with_program() const;  // bytes, of the device
  void report_memory() const;

  World& world_;
  Comm& comm_;                       // what the ranks agree by
  std::unique_ptr<Comm> data_comm_;  // what their tensors travel by
  Backend& backend_;
  const StopSignal& stop_;
  RunConfig config_;
  TrainerOptions options_;
  BatchShape shape_;

  std::optional<SampleSource> train_data_;
  std::optional<SampleSource> validation_data_;
  std::optional<Evaluator> evaluator_;
  std::unique_ptr<Assembly> assembly_;
  std::optional<HostState> host_state_;
  std::optional<Checkpointer> checkpointer_;
  std::optional<Schedule> schedule_;
  std::optional<Loader> loader_;
  std::optional<StepReader> reader_;
  std::optional<Monitor> monitor_;
  BadSteps bad_steps_;

  RunState state_;
  int64_t saved_step_ = -1;      // of the last checkpoint
  int64_t tokens_saved_ = 0;     // state_.tokens at the last checkpoint
  int64_t program_bytes_ = 0;    // resident before the plan was committed
  int64_t committed_bytes_ = 0;  // and after
  std::string refusal_;          // why the last save was refused
  Stopwatch since_save_;
};

}  // namespace tokamak

// A training run, from its config to its last checkpoint. Construction opens the data, plans and takes memory, and
// loads or initialises the weights; run() trains. Every phase that can fail does so on all ranks alike
// (comm/collective_error.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/world.h"
#include "data/loader.h"
#include "monitor/monitor.h"
#include "monitor/run_clocks.h"
#include "monitor/run_status.h"
#include "optim/schedule.h"
#include "resilience/progress.h"
#include "resilience/stragglers.h"
#include "train/auto_choice.h"
#include "train/bad_steps.h"
#include "train/corruption.h"
#include "train/gradient_check.h"
#include "train/last_words.h"
#include "train/memory_check.h"
#include "train/peak.h"
#include "train/run_checkpoints.h"
#include "train/run_config.h"
#include "train/run_data.h"
#include "train/run_plan.h"
#include "train/sampler.h"
#include "train/state_guard.h"
#include "train/step.h"
#include "train/step_trace.h"
#include "train/stop_signal.h"

namespace tokamak {

enum class RunEnd { kDone, kStopped };

struct TrainerOptions {
  std::string program;              // its version, for the records
  std::string command;              // the command line, for the same
  std::string config_text;          // the config as config/ prints it, for the run directory and the checkpoints
  std::vector<NamedText> settings;  // the same, key by key, for the records
  // Takes training.evals (src/eval does), calling `between` between micro-batches. Collective.
  std::function<std::vector<NamedValue>(Engine&, const std::function<void()>& between)> evals;
  const Sampler* sampler = nullptr;  // of training.samples; outlives the trainer; nullptr: there are none
  // "KEY: OLD -> NEW" of each key that differs from the config in `checkpoint`; an Error where one may not (src/config
  // does).
  std::function<std::vector<std::string>(const std::string& saved_config, const std::string& checkpoint)> check_changes;
  // Settles mode: auto and keep_gathered: auto (src/plan does); needed where the config has them.
  Chooser chooser;
  int64_t stop_at_step = 0;                            // save and stop after this step, as on a signal; 0: never
  StartupClock startup;                                // of this start, with the phases that are behind it
  std::function<std::vector<Straggler>()> stragglers;  // found since the last call (Watchdog); empty: nobody looks
  RunProgress* progress = nullptr;  // told of phases and steps; outlives the trainer; nullptr: nobody watches
};

class Trainer {
 public:
  // Collective; `config` is complete (run_plan.h). SharedError where the run cannot start.
  Trainer(World& world, Backend& backend, const StopSignal& stop, RunConfig config, TrainerOptions options);
  ~Trainer();

  RunEnd run();

 private:
  void start(World& world, Backend& backend, const GlobalBatch& batch);
  void open_records(World& world, int64_t total_steps);
  void settle(World& world, const Device& device, const GlobalBatch& batch, const MemoryShare& memory);
  int64_t take_memory(World& world, Backend& backend, const GlobalBatch& batch);  // returns the bytes in use after it
  std::vector<std::string> load_state(const GlobalBatch& batch);                  // returns what changed in the config
  void start_monitor(int64_t committed_bytes);

  void step();
  TokenBatch next_batch(Loader& loader);
  LoaderOptions loader_options() const;     // from the next sample on
  void read_outcomes(int64_t leave);        // of finished steps, but for the last `leave`
  bool statistics_due(int64_t step) const;  // of tensors: every so many steps, and at the last one
  void report_statistics(int64_t step);
  void report_stragglers();
  RunEnd train();          // until it is finished, or is to stop
  bool evaluate_if_due();  // false where a stop has cut it short
  void validate();
  void take_evals();
  void take_samples();
  bool due(int64_t interval) const { return finished() || (interval > 0 && state_.step % interval == 0); }
  bool finished() const { return state_.step >= run_.shape.total_steps; }

  int64_t stop_reason();  // a signal's number, kTimeIsOver, or 0; of any rank
  bool should_stop();
  void stop_between();  // throws StopRequested where the run is to stop

  Phase save_phase() const;
  void save_if_due();
  void begin_save(Retention retention);
  std::optional<SaveOutcome> finish_save();  // of the one under way, if there is one
  void report_save(const SaveOutcome& outcome);
  void save_or_fail();

  // Silent data corruption. Where a step does not get over it, all ranks throw.
  void start_checks();
  bool recompute_due(int64_t step) const;
  double checked_gradients(int64_t step);  // as compute_gradients
  void compute_again(int64_t step, const Corruption& corruption);
  void see_state(int64_t step);  // after the outcome of this step
  void check_state_before_save();
  void end_if_corrupt(const Corruption& corruption, const std::string& what, int64_t sound_step);
  void record_corruption(const Corruption& corruption, const std::string& text);

  // How this start ends, in its records and in status.json: an error of `body` too.
  void or_record_end(const std::function<void()>& body);
  void record_end(RunStatus::State state, const std::string& detail, int code);
  void write_status(RunStatus::State state, int code, const std::string& cause = "") const;
  std::string advice_for_bad_steps(int64_t first) const;
  void report_memory() const;

  Comm& comm_;                       // what the ranks agree by
  std::unique_ptr<Comm> data_comm_;  // what their tensors travel by
  std::optional<MeshGroups> mesh_;   // its groups
  const StopSignal& stop_;
  RunConfig config_;  // settled when memory is taken
  const TrainerOptions options_;

  std::optional<RunData> data_;
  std::optional<Peak> peak_;
  PlannedRun run_;  // its memory is taken
  std::optional<AutoChoice> choice_;
  int64_t planned_bytes_ = 0;  // of the device, with what the program had before
  std::optional<RunCheckpoints> checkpoints_;
  std::optional<Schedule> schedule_;
  std::optional<Loader> loader_;
  std::optional<StepReader> reader_;
  std::optional<StepTrace> trace_;
  std::optional<GradientCheck> gradient_check_;
  std::optional<StateGuard> state_guard_;
  std::vector<std::string> blamed_hosts_;  // for a step that was computed again
  int64_t sound_step_ = 0;                 // whose gradients were the same twice, or from which this start went on
  BadSteps bad_steps_;
  double save_stall_ = 0;  // seconds that training has waited for the save under way, and those of its copy
  double save_copy_ = 0;
  StartupClock startup_;
  std::optional<Recorder> recorder_;
  std::optional<LastWords> last_words_;
  std::optional<Monitor> monitor_;

  RunState state_;
  bool was_done_ = false;  // all of it, by an earlier start
};

}  // namespace tokamak

// The loop of one row of a run's stages, from the state that it starts with to its last checkpoint. A run without
// stages is one row. The next row has a trainer of its own, which loads what this one has saved. Every phase that can
// fail does so on all ranks (comm/collective_error.h).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "resilience/stragglers.h"
#include "train/bad_steps.h"
#include "train/corruption_checks.h"
#include "train/prepared_run.h"
#include "train/run_checkpoints.h"
#include "train/sampler.h"
#include "train/spikes.h"
#include "train/step.h"
#include "train/step_trace.h"
#include "train/stop_signal.h"

namespace tokamak {

enum class RunEnd { kDone, kStopped, kNextRow };  // kNextRow: a row of stages has ended, and its state is saved

struct TrainerOptions {
  // Runs training.evals (src/eval implements it), calling `between` between micro-batches. Collective.
  std::function<std::vector<NamedValue>(Engine&, const std::function<void()>& between)> evals;
  const Sampler* sampler = nullptr;  // of training.samples; outlives the trainer; nullptr: there are none
  // "KEY: OLD -> NEW" of each key that differs from the config in `checkpoint`; an Error if one may not differ
  // (src/config implements it).
  std::function<std::vector<std::string>(const TrainingPoint& saved, const std::string& checkpoint)> check_changes;
  int64_t stop_at_step = 0;                            // save and stop after this step, as on a signal; 0: never
  int64_t trace_step = 0;                              // trace this step instead of training it, and end; 0: none
  std::function<std::vector<Straggler>()> stragglers;  // found since the last call (Watchdog); empty: no watchdog
};

class Trainer {
 public:
  // Collective. Allocates the memory and loads or initialises the weights of the point at which `open` is. `run` is
  // prepared from open.row_config(). SharedError if the run cannot start. `world`, `stop` and `open` outlive this.
  Trainer(World& world, const StopSignal& stop, PreparedRun run, OpenRun& open, TrainerOptions options);

  RunEnd run();

  // Builds all that a state of this run determines, the engine having its weights: loader, outcomes, checks, clock,
  // position. Abandons the checkpoints of later steps. Collective.
  void go_to(const RunState& state);

 private:
  void start();
  RunState load();
  void report_ready(int64_t committed_bytes);
  void report_row();
  RunEnd train_through_spikes(bool was_done);  // until it is finished, or is to stop
  RunEnd train(bool was_done);                 // until then, or throws Spike
  void step();
  double compute_gradients(int64_t step);  // and reads the outcome of the step before
  enum class Gradients { kKept, kLost };
  // Reads the outcome of the last step, unless it has been read. Returns whether a trace has overwritten gradients.
  // Throws Spike if the run must go back.
  Gradients read_outcome();
  Gradients see_bad_step(const StepOutcome& outcome);
  StepOutcome repeat_with_zeros(const StepOutcome& skipped);
  void see_spike(const StepOutcome& outcome);
  void roll_back(const Spike& spike);
  RunEnd trace_next_step();
  RunEvent trace(int64_t step, int64_t first_sample);  // and writes the event
  void report_statistics(int64_t step);
  void report_stragglers();

  void evaluate_if_due();  // state_ says if a stop has cut it short
  void validate();
  void take_evals();
  void take_samples();
  void save_if_due();
  void save_last();

  int64_t stop_reason();  // a signal's number, kTimeIsOver, or 0; of any rank
  bool should_stop();
  void stop_between();  // throws StopRequested if the run must stop

  LoaderOptions loader_options(int64_t first_sample) const;
  void open_loader();  // that begins with the next sample
  StepSettings settings_of(int64_t step);
  StepLimits limits() const;
  std::string doubt() const;  // why a checkpoint of this state may be no good; empty: it is
  bool statistics_due(int64_t interval, int64_t step) const;  // always at the last step
  ShardStatistics* statistics_of(int64_t step);               // nullptr: they are not due
  ActivationStatistics* activations_of(int64_t step);         // likewise
  bool due(int64_t interval) const { return row_is_done() || (interval > 0 && state_.step % interval == 0); }
  bool row_is_done() const { return state_.step >= open_.row().last_step(); }
  RunRecords& records() { return open_.records; }
  RunProgress* progress() const { return open_.progress; }
  const RunConfig& config() const { return run_.config; }
  Engine& engine() { return *run_.planned.engine; }

  Comm& comm_;  // the control group, in which the ranks agree
  const StopSignal& stop_;
  const TrainerOptions options_;
  PreparedRun run_;
  OpenRun& open_;
  const bool at_border_;  // another trainer of this start has trained the row before
  RunCheckpoints checkpoints_;
  std::optional<CorruptionChecks> checks_;
  std::optional<Loader> loader_;
  double waited_ = 0;  // for data, in seconds, by loaders before this one
  std::optional<StepReader> reader_;
  StepTrace trace_;
  BadSteps bad_steps_;
  int64_t traces_ = 0;      // of values that are not finite
  bool was_finite_ = true;  // the last outcome
  RunState state_;
  int64_t last_first_sample_ = 0;  // of the last step
  bool saves_soon_ = false;        // after a rollback or a save that was left out: the first good state is saved
};

}  // namespace tokamak

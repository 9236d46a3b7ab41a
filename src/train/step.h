// One optimizer step: micro-batches forward and backward, gradients reduced and clipped, weights updated. It only
// enqueues; what came of it is read later (StepReader), so that the device never waits for the host.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "data/loader.h"
#include "engine/engine.h"
#include "monitor/interval.h"
#include "optim/grad_norm.h"
#include "resilience/progress.h"
#include "train/state_guard.h"

namespace tokamak {

// The next micro-batch, valid until the next call: a loader's, or random tokens (bench).
using NextBatch = std::function<TokenBatch()>;

struct StepSettings {
  int64_t t = 1;  // steps since the optimizer's state was zero, this one included
  double lr = 0;
  double max_grad_norm = 1;
  double max_unit_grad_norm = 0;
  StepLimits limits = {};
  NonFiniteGradients non_finite = NonFiniteGradients::kKept;
  int64_t micro_batches = 1;              // of this rank
  StateGuard* guard = nullptr;            // sees the state before and after the update
  ShardStatistics* statistics = nullptr;  // sees gradients before max_grad_norm clips them, then weights and updates
  std::vector<double> averages = {};      // weight of each average's update; empty: none is updated
};

// Returns to how many tokens a token of this rank attended, on average over tokens and layers (model/flops.h).
double run_step(Engine& engine, const NextBatch& next, const StepSettings& settings);

// The two halves of run_step(). The first leaves the gradients of all ranks summed in this rank's shard, and this
// rank's losses in engine.sums(). The second clips and updates.
double compute_gradients(Engine& engine, const NextBatch& next, int64_t micro_batches);  // returns as run_step
void update_weights(Engine& engine, const StepSettings& settings);

// The micro-batch as the model takes it.
TokenBatch view_of(const MicroBatch& batch);

// Returns the micro-batches of `loader`, which outlives the result. Each ticks `progress` (nullptr: no watchdog).
NextBatch batches_of(Loader& loader, RunProgress* progress);

// Brings a step's outcome (StepControl) to the host after the next step's gradients are enqueued, and before its update
// is: the copy is enqueued behind the step. The host waits for it while the device has those gradients to compute. The
// state is still that after the step. The host does not read an outcome as soon as it arrives: ranks would see it at
// different times. The error of too many bad steps (bad_steps.h) would then leave some of them in a collective.
class StepReader {
 public:
  explicit StepReader(Engine& engine);

  void fetch(int64_t step, double lr, double attended);  // enqueues the copy, behind the step just enqueued
  bool pending() const { return pending_.has_value(); }  // whether there is an outcome to take
  StepOutcome take();                                    // waits for that step, not for later work

 private:
  Engine& engine_;
  std::unique_ptr<Arena> arena_;
  Tensor control_;  // (kStepControls) f32, pinned
  std::unique_ptr<Event> arrived_;
  std::optional<StepOutcome> pending_;  // without the values of control_
};

}  // namespace tokamak

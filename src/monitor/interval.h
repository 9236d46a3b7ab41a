// The steps since the last report and their values. It reads no clock and no device: its caller passes every number.
#pragma once

#include <cmath>
#include <functional>

#include "monitor/record.h"

namespace tokamak {

// The outcome of one optimizer step.
struct StepOutcome {
  int64_t step = 0;
  double lr = 0;
  double loss = 0;       // mean over the global batch
  double z_loss = 0;     // mean over the global batch
  double grad_norm = 0;  // global, before max_grad_norm clips
  bool applied = true;   // false: not finite or a spike, weights untouched
  bool zeroed = false;   // the gradient's values that are not finite were set to zero
  double attended = 0;   // tokens that a token of this rank attended to, on average over tokens and layers
  double time = 0;       // now_seconds() after the step was enqueued

  bool is_finite() const { return std::isfinite(loss) && std::isfinite(z_loss) && std::isfinite(grad_norm); }
};

// Turns steps and seconds into tokens, MFU and an ETA.
struct RunScale {
  int64_t first_step = 0;  // done before this start
  int64_t total_steps = 0;
  int64_t last_step = 0;                              // of this part of the run: a record ends there
  std::function<int64_t(int64_t step)> tokens_after;  // trained on by the run's first `step` steps
  std::function<int64_t(int64_t step)> length;        // T of a step
  struct TokenFlops {
    std::function<double(double attended)> done;        // of a token that attends to so many tokens
    std::function<double(double length)> full, causal;  // by convention, in sequences of a length
  } token_flops;
  double peak_flops = 0;  // of all ranks, per second; 0: no MFU
};

class Interval {
 public:
  // `start`: training time (run_clocks.h) at which the first step begins.
  Interval(RunScale scale, double start) : scale_(std::move(scale)), run_start_(start), start_(start) {}

  void add(const StepOutcome& outcome);  // of each step, in order

  struct End {
    double time = 0;          // training time of the last step
    double data_wait = 0;     // seconds that this rank has waited for data, since its start
    int64_t memory_used = 0;  // bytes of the device
  };
  // The values of the steps since the last call; `last` is the latest of them.
  MetricRecord take(const StepOutcome& last, const End& end);

 private:
  RunScale scale_;
  double run_start_;
  double start_;          // of this interval
  double data_wait_ = 0;  // at the last report
  int64_t skipped_ = 0;   // steps not applied, in this start
  struct Sums {           // over this interval's steps
    double loss = 0;      // of those that were applied
    int64_t applied = 0;
    double attended = 0;
    int64_t length = 0;
    int64_t steps = 0;
  } sums_;
};

}  // namespace tokamak

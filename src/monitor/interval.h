// The steps since the last report, and the values that are reported of them. It is told every time and number: asking
// the clock or the device is its caller's matter.
#pragma once

#include <functional>

#include "monitor/record.h"
#include "monitor/step_outcome.h"

namespace tokamak {

// What turns steps and seconds into tokens, MFU and an ETA.
struct RunScale {
  int64_t first_step = 0;  // done before this start
  int64_t total_steps = 0;
  int64_t tokens_per_step = 0;
  std::function<double(double attended)> token_flops;  // of a token that attends to so many
  double sequence_length = 0;                          // T
  double peak_flops = 0;                               // of all ranks, per second; 0: no MFU
};

class Interval {
 public:
  // `start`: training time (training_clock.h) at which the first step begins.
  Interval(RunScale scale, double start) : scale_(std::move(scale)), run_start_(start), start_(start) {}

  void add(const StepOutcome& outcome);  // of the steps in order

  struct End {
    double time = 0;          // training time of the last step
    double data_wait = 0;     // of this rank since it started, in seconds
    int64_t memory_used = 0;  // bytes of the device
  };
  // The values of the steps added since the last call, `last` being the latest of them.
  MetricRecord take(const StepOutcome& last, const End& end);

  const RunScale& scale() const { return scale_; }

 private:
  void append_mfu(double tokens_per_second, std::vector<NamedValue>& values) const;

  RunScale scale_;
  double run_start_;
  double start_;          // of this interval
  double data_wait_ = 0;  // at the last report
  double loss_sum_ = 0;   // of this interval's steps that were applied
  int64_t loss_count_ = 0;
  double attended_ = 0;  // sum over this interval's steps
  int64_t steps_ = 0;    // of this interval
  int64_t skipped_ = 0;  // steps not applied, in this start
};

}  // namespace tokamak

// The learning rate as a function of the step. Pure arithmetic: resuming needs no state.
#pragma once

#include <cstdint>

#include "optim/options.h"

namespace tokamak {

class Schedule {
 public:
  // `peak` is the maximum learning rate; the run has total_steps of tokens_per_step tokens each.
  Schedule(const ScheduleOptions& options, double peak, int64_t total_steps, int64_t tokens_per_step);

  // Learning rate of step t, t = 1 .. total_steps. With W warm-up steps and the decay over [D, total_steps]:
  //   t <= W:        peak t / W
  //   t <= D:        peak
  //   otherwise:     from peak to min_lr_factor peak, by cosine (SGDR, Loshchilov and Hutter 2017) or linearly
  // cosine and linear decay from D = W; wsd (Hu et al. 2024, MiniCPM) linearly over the last decay_ratio of the run.
  double at(int64_t step) const;

 private:
  DecayType decay_type_;
  double peak_;
  double floor_;
  int64_t total_steps_;
  int64_t warmup_steps_;
  int64_t decay_start_;
};

// Converts a training length to whole steps: steps as given, tokens rounded up, a share of total_steps rounded to
// nearest. Error(kConfig) naming `key` if the unit is invalid here (seconds).
int64_t length_in_steps(const TrainingLength& length, const char* key, int64_t total_steps, int64_t tokens_per_step);

}  // namespace tokamak

// The learning rate as a function of the step and of the tokens after it. Pure arithmetic: resuming needs no state.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "optim/options.h"

namespace tokamak {

// A run as its schedule sees it. Batches may differ from step to step.
struct RunSteps {
  int64_t total = 0;                                  // E
  std::function<int64_t(int64_t step)> tokens_after;  // tau of steps 0, 1, ..., also beyond the last; strictly rising
};

class Schedule {
 public:
  // `peak` is the maximum learning rate. `run` is not kept. Error(kConfig), naming key and values, if the warm-up or
  // the tail does not fit into the run.
  Schedule(const ScheduleOptions& options, double peak, const RunSteps& run);

  // Learning rate of step t = 1 .. E, after which the run has trained on tau tokens. W, D and E are the last steps of
  // the warm-up, before the tail, and of the run. Shares x and p are of tokens: those of a constant batch are the
  // quotients of steps, to the last bit.
  //   t <= W:     peak t / W
  //   t <= D:     base(tau), never below floor = min_lr_factor peak; left = floor + (peak - floor) ...
  //     constant, wsd   peak
  //     cosine          left (1 + cos pi x) / 2, x over [W, E]   (SGDR without restarts, Loshchilov and Hutter 2017)
  //     linear          left (1 - x)
  //     inverse_sqrt    peak sqrt(tau_W / tau); without a warm-up, constant over 10,000 steps, which take the place
  //                     of W (T5, Raffel et al. 2020, 3.1.2)
  //     restarts        cosine in each of the cycles of c, c f, c f^2, ... tokens from W on, whose peaks fall by
  //                     cycle_peak_factor (SGDR)
  //   otherwise:  the tail from base(tau_D) to floor, p over [D, E]: floor + (base(tau_D) - floor) ...
  //     linear          1 - p                     (WSD: MiniCPM, Hu et al. 2024)
  //     sqrt            1 - sqrt p                (Haegele et al. 2024)
  //     cosine          (1 + cos pi p) / 2
  //     exponential     base(tau_D) (floor / base(tau_D))^p instead of a sum
  // Only wsd, and what has a decay_start, has a tail. Without decay_start, it takes the last decay_ratio of the steps.
  double at(int64_t step, int64_t tokens) const;

  int64_t warmup_steps() const { return warmup_.step; }  // W
  int64_t tail_start() const { return tail_.step; }      // D; E without a tail

 private:
  struct Mark {
    int64_t step = 0;
    int64_t tokens = 0;  // after the step
  };
  struct Cycle {
    double begin = 0;   // tokens before it
    double length = 0;  // tokens
    double peak = 0;
  };

  double base(int64_t tokens) const;
  double restarted(int64_t tokens) const;
  double tail(double progress) const;
  double towards_floor(double from, double left) const { return floor_ + (from - floor_) * left; }
  std::vector<Cycle> cycles_of(const ScheduleOptions& options, const RunSteps& run) const;

  DecayType type_;
  DecayShape shape_;
  double peak_;
  double floor_;
  Mark warmup_;
  Mark tail_;
  Mark end_;
  double timescale_ = 0;       // inverse_sqrt: tokens
  std::vector<Cycle> cycles_;  // restarts: all that begin in the run
};

// Converts a training length to whole steps: steps as given, tokens rounded up, a share of the run rounded to nearest.
// Error(kConfig) naming `key` if the unit is invalid here (seconds), or the run is shorter.
int64_t length_in_steps(const TrainingLength& length, const char* key, const RunSteps& run);

}  // namespace tokamak

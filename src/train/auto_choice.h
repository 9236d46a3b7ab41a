// The values of the auto keys for one start: activation_checkpoint.mode, parallelism.keep_gathered and, with either of
// them, training.micro_batch_size and parallelism.reduce. plan/auto_choice.h chooses; every rank takes the same values.
#pragma once

#include <cstdint>
#include <string>

#include "model/recompute.h"
#include "train/batch_shape.h"
#include "train/run_config.h"

namespace tokamak {

// Whether recompute or gathered layers are auto. Without these nothing is predicted: run_plan.h chooses an automatic
// micro-batch, and sharding_policy.h has a fixed answer for an automatic `reduce`.
bool leaves_choice(const RunConfig& config);

struct AutoChoice {
  int64_t micro_batch = 1;
  int64_t keep_gathered = 0;     // layers
  bool reduce_once = false;      // reduce: auto becomes last_microbatch, in stages that it matters for
  KeptLayers kept;               // with mode: auto
  double predicted_seconds = 0;  // of a step
};

// The config with the keys that are auto set to the choice: mode selective with kept_layers, two counts, and reduce.
RunConfig with_choice(RunConfig config, const AutoChoice& choice);

// The config with mode none and keep_gathered none, for uses in which only sizes or operations matter.
RunConfig without_choice(RunConfig config);

// The choice that takes least memory: nothing kept, and with micro_batch_size: auto one sequence at a time.
AutoChoice least_choice(const RunConfig& config);

// "training.micro_batch_size 4, parallelism.keep_gathered 2, ...": the keys that were auto.
std::string text_of(const RunConfig& config, const AutoChoice& choice);

}  // namespace tokamak

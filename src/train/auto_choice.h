// What activation_checkpoint.mode: auto, parallelism.keep_gathered: auto and, with either of them,
// training.micro_batch_size: auto and parallelism.reduce: auto come to for one start. plan/auto_choice.h
// chooses; every rank must take the same choice.
#pragma once

#include <cstdint>
#include <string>

#include "model/recompute.h"
#include "train/batch_shape.h"
#include "train/run_config.h"

namespace tokamak {

// Whether the config leaves recompute or gathered layers to the program. micro_batch_size: auto and reduce: auto alone are
// no such choice: run_plan.h cuts the batch, and sharding_policy.h has a fixed answer.
bool leaves_choice(const RunConfig& config);

struct AutoChoice {
  int64_t micro_batch = 1;
  int64_t keep_gathered = 0;     // layers
  bool reduce_once = false;      // of reduce: auto, last_microbatch in the stages that would reduce in every one
  KeptLayers kept;               // of mode: auto
  double predicted_seconds = 0;  // of a step
};

// What a choice depends on. Bytes are those that a plan may fill, the same on every rank.
struct ChoiceInputs {
  RunConfig config;  // complete (run_plan.h)
  GlobalBatch batch;
  int ranks = 1;
  int ranks_per_node = 1;
  std::string device;     // as it describes itself
  int64_t total = 0;      // the same from start to start: what micro-batch and reduce go by, on which the bits depend
  int64_t available = 0;  // now: what the others go by, too
};

// The config with the keys that are auto set to the choice: mode selective with kept_layers, two counts, and reduce.
RunConfig with_choice(RunConfig config, const AutoChoice& choice);

// The same where nothing is to be chosen, and only sizes or operations matter: mode none, keep_gathered none.
RunConfig without_choice(RunConfig config);

// The one that takes least memory: micro-batches of one sequence, nothing kept.
AutoChoice least_choice(const RunConfig& config);

// "training.micro_batch_size 4, parallelism.keep_gathered 2, ...": the keys that were left to the program.
std::string text_of(const RunConfig& config, const AutoChoice& choice);

}  // namespace tokamak

// The config of a run that decays from a checkpoint of another run, its trunk. The config alone says all of it, so that
// it resumes without the options of the command line, and without the trunk.
#pragma once

#include <string>
#include <vector>

#include "train/run_config.h"

namespace tokamak::cli {

struct DecayOptions {
  std::string from;                                       // a checkpoint's directory
  TrainingLength length = TrainingLength::fraction(0.1);  // of the tail: steps, tokens, or a share of the steps done
};

// The config of `path` and `overrides`, with the checkpoint's step as lr_scheduler.decay_start. The run loads the
// checkpoint, ends with the tail, and has a directory of its own: run.output_dir-decay-STEP. A run that has begun needs
// the checkpoint no more. Error(kConfig) unless the learning rates of the config and of the checkpoint's run are
// constant there, or if the directory has another length of decay.
RunConfig load_decay_run(const std::string& path, const std::vector<std::string>& overrides, const DecayOptions& decay);

}  // namespace tokamak::cli

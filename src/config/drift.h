// What differs between the config that a checkpoint was written with and that of the run which goes on from it. Keys that
// alter the function which the weights are of, or what they are trained on, may not change by accident.
#pragma once

#include <string>
#include <vector>

#include "train/run_config.h"

namespace tokamak {

struct ConfigChange {
  std::string key;  // "model.rope_theta"
  std::string was;  // in the checkpoint
  std::string is;
};

struct ConfigChanges {
  std::vector<ConfigChange>
      harmless;                       // what a run may change as it goes on: learning rate, intervals, batch cut, paths
  std::vector<ConfigChange> refused;  // all of model but initializer_range, and data.document_masking
};

// `saved`: the resolved config in the checkpoint. Keys that only one of the two has are of another version of the
// program, and no change; so is a text that is no config at all.
ConfigChanges compare_configs(const std::string& saved, const RunConfig& config);

// For a start from `checkpoint`: what changed, each as "KEY: OLD -> NEW". Error(kConfig) naming each refused key with both
// values, unless checkpoint.allow_changes names it.
std::vector<std::string> check_changes(const std::string& saved, const RunConfig& config,
                                       const std::string& checkpoint);

}  // namespace tokamak

// Compares a checkpoint's config with that of the run that resumes from it. Keys that change the model's function, or
// the tokens that attention sees, may not change by accident.
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
  std::vector<ConfigChange> harmless;  // learning rate, intervals, micro-batches, paths, ...
  std::vector<ConfigChange> refused;   // all of model except initial values, and data.document_masking
};

// `saved`: the resolved config in the checkpoint. Ignores keys that only one of the two has, which come from another
// version of the program, and a text that is not YAML. Refused keys that `saved` lacks had their default.
ConfigChanges compare_configs(const std::string& saved, const RunConfig& config);

// The changes at a start from `checkpoint`, of step `step`, each as "KEY: OLD -> NEW". Error(kConfig) naming each
// refused key with both values, unless checkpoint.allow_changes names it; and if an average of the weights changed its
// kind. In a run with stages, the model is that of the stage which the step belongs to.
std::vector<std::string> check_changes(const std::string& saved, const RunConfig& config, const std::string& checkpoint,
                                       int64_t step = 0);

}  // namespace tokamak

// What a config must satisfy whatever the number of ranks: ranges, required fields, fields that contradict each other,
// and values this version does not have yet.
#pragma once

#include <vector>

#include "train/run_config.h"

namespace tokamak {

// Everything that is wrong with it; empty where all is well. model.vocab_size may be 0: the data manifest gives it.
std::vector<FieldError> find_problems(const RunConfig& config);

// Error(kConfig) that lists what find_problems finds. load_config has done it already, with file and line.
void validate(const RunConfig& config);

}  // namespace tokamak

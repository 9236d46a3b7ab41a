// The rules of a config that hold for any number of ranks: ranges, required fields, contradictions, and values that
// this version does not support yet.
#pragma once

#include <vector>

#include "train/run_config.h"

namespace tokamak {

// All problems; empty if the config is valid. model.vocab_size may be 0: the data manifest then defines it.
std::vector<FieldError> find_problems(const RunConfig& config);

}  // namespace tokamak

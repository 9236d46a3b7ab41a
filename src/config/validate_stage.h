// Rules of a run of one stage, which validate.cc has, for those of several stages.
#pragma once

#include <string>
#include <vector>

#include "train/run_config.h"

namespace tokamak {

std::vector<FieldError> problems_of_one_stage(const RunConfig& config);

// Whether `name` can name a value in records, in files of metrics and on a line of the log.
bool is_word(const std::string& name);

}  // namespace tokamak

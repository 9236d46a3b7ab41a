// Rules of a run of one stage, which validate.cc has, for those of several stages.
#pragma once

#include <string>
#include <vector>

#include "train/run_config.h"

namespace tokamak {

// Steps in a row, of which a length in steps or tokens is a share.
struct StepSpan {
  struct Part {
    double steps = 0, batch = 0;  // tokens of a step
  };
  double tokens = 0;
  std::vector<Part> parts;  // none: unknown

  double tokens_after(double steps) const;  // beyond the end, steps are as those of the last part
};

// `scheduled`: what lr_scheduler spans; `run`: the whole run.
std::vector<FieldError> problems_of_one_stage(const RunConfig& config, const StepSpan& scheduled, const StepSpan& run);

// Whether `name` can name a value in records, in files of metrics and on a line of the log.
bool is_word(const std::string& name);

}  // namespace tokamak

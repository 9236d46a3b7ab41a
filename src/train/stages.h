// The stages of a run, as rows of consecutive steps with one batch, length, mixture and model. A warm-up of the batch
// or of the length cuts the first stage into several rows. A run without stages is one row. Pure functions of the
// config.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/run_config.h"

namespace tokamak {

struct StageRow {
  StageOptions options;    // complete: steps is set, tokens is 0
  int64_t stage = 0;       // index in RunConfig::stages
  int64_t first_step = 1;  // in the run

  int64_t last_step() const { return first_step + options.steps - 1; }
  bool contains(int64_t step) const { return first_step <= step && step <= last_step(); }
  int64_t sequences() const { return options.global_batch_tokens / options.sequence_length; }
};

// At least one row, in the order of their steps. `config` has been validated (config/validate.h), but for a warm-up
// that is as long as its stage: Error(kConfig).
std::vector<StageRow> stage_rows(const RunConfig& config);

// The row of a step: 1, 2, ...; steps after the last one are of the last row, step 0 is of the first.
int64_t row_of_step(const std::vector<StageRow>& rows, int64_t step);

// The config of a run that consists of this row alone: the row's values in place of the run's, and its steps as
// training.max_steps. A run without stages and warm-ups stays as it is.
RunConfig config_of_row(const RunConfig& config, const StageRow& row);
// That of the row which step `step` of the run belongs to: the model and the data of a checkpoint's weights.
RunConfig config_at_step(const RunConfig& config, int64_t step);

bool has_rows(const RunConfig& config);  // whether it has stages or a warm-up

}  // namespace tokamak

// README.md of an exported model: what it is and what the run's own records say of it.
#pragma once

#include <optional>
#include <string>

#include "checkpoint/manifest.h"
#include "interop/weight_stream.h"
#include "train/run_config.h"

namespace tokamak {

// The last metrics that a run's metrics.jsonl has of this step or earlier ones.
struct RunRecord {
  std::optional<double> loss;             // of training
  std::optional<double> validation_loss;  // of the held-out data
};
// Nothing where the file is not there.
RunRecord read_run_record(const std::string& metrics_path, int64_t step);

std::string render_model_card(const CheckpointManifest& manifest, const RunConfig& config, WeightType type,
                              const RunRecord& record);

}  // namespace tokamak

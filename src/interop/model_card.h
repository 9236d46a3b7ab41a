// README.md of an exported model: a description, and metrics from the run's records.
#pragma once

#include <optional>
#include <string>

#include "checkpoint/manifest.h"
#include "interop/weight_stream.h"
#include "train/run_config.h"

namespace tokamak {

// The latest metrics of the exported weights in a run's metrics.jsonl up to this step.
struct RunRecord {
  std::string average;                    // the name of an average of the weights; "": the weights themselves
  std::optional<double> loss;             // of training, which only the weights themselves have
  std::optional<double> validation_loss;  // of the held-out data
};
// Empty if the file is missing.
RunRecord read_run_record(const std::string& metrics_path, int64_t step, const std::string& average);

std::string render_model_card(const CheckpointManifest& manifest, const RunConfig& config, WeightType type,
                              const RunRecord& record);

}  // namespace tokamak

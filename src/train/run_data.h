// The samples that a run reads: those that it trains on, and those held out.
#pragma once

#include <optional>

#include "data/sample_source.h"
#include "train/batch_shape.h"
#include "train/run_config.h"

namespace tokamak {

struct RunData {
  // Error(kData) and Error(kConfig) as SampleSource, and where the two were made with different tokenizers.
  RunData(const RunConfig& config, const GlobalBatch& batch);

  SampleSource train;
  std::optional<SampleSource> validation;  // in the order in which it lies
};

}  // namespace tokamak

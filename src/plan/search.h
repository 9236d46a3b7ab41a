// The sensible settings of a run on a machine, each with its prediction.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plan/prediction.h"

namespace tokamak {

struct Choices {
  std::vector<Prediction> fitting;  // the fastest first
  std::vector<Prediction> others;   // the smallest micro-batch of each recompute mode that never fits
};

using SearchProgress = std::function<void(int64_t tried, int64_t ways)>;

// Tries every ZeRO stage and recompute mode with every micro-batch of auto_choice.h that fits:
// - sharded over all ranks, over a node, and, if communication is exposed, over 2, 4, ... nodes;
// - with mode auto in stage 3, also with keep_gathered auto: the fastest choice of each micro-batch is used;
// - if nothing of stage 3 fits, also with parallelism.unit: projection.
// All other keys stay as configured.
Choices search(const RunConfig& config, const GlobalBatch& batch, int ranks, const Machine& machine,
               const SearchProgress& progress = {});

// The choice as lines of YAML: "training:\n  micro_batch_size: 2\n...". `global_batch_tokens` 0: the config's.
std::string yaml_of(const Prediction& choice, int64_t global_batch_tokens = 0);

}  // namespace tokamak

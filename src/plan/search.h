// The sensible settings of a run on a machine, each with its prediction.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plan/prediction.h"

namespace tokamak {

struct Choices {
  std::vector<Prediction> fitting;  // the fastest first
  std::vector<Prediction> others;   // of each recompute mode that fits nowhere, its smallest micro-batch
};

// Told now and then how many of the ways to set a run have been tried.
using SearchProgress = std::function<void(int64_t tried, int64_t ways)>;

// Every stage of ZeRO, within all ranks and within a node with replicas across, and where communication is exposed within
// 2, 4, ... nodes; every recompute mode, and every micro-batch of auto_choice.h, as far as they fit. With mode auto in stage
// 3 keep_gathered is auto too, and of several choices of one micro-batch the fastest counts. Where nothing of stage 3 fits,
// units of a projection are tried, too. The rest as configured.
Choices search(const RunConfig& config, const GlobalBatch& batch, int ranks, const Machine& machine,
               const SearchProgress& progress = {});

// The lines of YAML that choose it: "training:\n  micro_batch_size: 2\n...". With a global batch that differs from the
// config's, in tokens; 0: the config's.
std::string yaml_of(const Prediction& choice, int64_t global_batch_tokens = 0);

}  // namespace tokamak

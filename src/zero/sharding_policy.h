// The stages of ZeRO (Rajbhandari et al. 2020) as data: how many buffers hold whole weights and gradients, and when a
// gradient is reduced. The code that gathers and reduces has no branch on the stage.
#pragma once

#include <cstdint>

#include "zero/options.h"

namespace tokamak {

struct ShardingPolicy {
  static constexpr int64_t kAllLayers = INT64_MAX;

  // The first layers have a buffer each for whole weights, gathered once after every update. The other layers share two
  // buffers. A use gathers the layer unless one of the two still holds it.
  int64_t kept_layers = 0;
  // true: whole gradients add up over the micro-batches, in a buffer for each layer, and the last micro-batch reduces
  // them. false: layers share two buffers, and each micro-batch reduces its gradients.
  bool reduce_once = false;
  // true: gathers and reductions run on their own streams, and the optimizer updates unit by unit, so that the next
  // step's gathers overlap the update. false: everything runs on the compute stream.
  bool overlap = true;
};

// Requires options that find_problems() accepts, and a settled keep_gathered.
ShardingPolicy sharding_policy(const ParallelismOptions& options);

// Copies of the state that `ranks` hold. Error(kConfig) if the degrees do not divide the ranks.
int replicas_of(const ParallelismOptions& options, int ranks);

}  // namespace tokamak

// What the stages of ZeRO differ in (Rajbhandari et al. 2020), as data: how long a unit's whole weights and its whole
// gradient live, hence how many buffers hold them, and when a gradient is reduced. The code that gathers and reduces
// knows no stage.
#pragma once

#include <cstdint>

#include "zero/options.h"

namespace tokamak {

struct ShardingPolicy {
  static constexpr int64_t kAllLayers = INT64_MAX;

  // The first layers, whose whole weights have a buffer each and are gathered once after every update. The others share
  // two buffers, and are gathered whenever they are not in one.
  int64_t kept_layers = 0;
  // Gradients add up whole over the micro-batches, in a buffer for each layer, and the last one reduces them. Else layers
  // share two, and each micro-batch reduces what it has written.
  bool reduce_once = false;
  // Gathers and reductions have streams of their own, and the optimizer goes unit by unit, so that the next step's first
  // gathers begin while it works on the last units. Else everything is in the order of the stream that computes.
  bool overlap = true;
};

// Of options that find_problems() accepts, with keep_gathered settled.
ShardingPolicy sharding_policy(const ParallelismOptions& options);

// Copies of the state that `ranks` hold. Error(kConfig) where the degrees and the ranks do not go together.
int replicas_of(const ParallelismOptions& options, int ranks);

}  // namespace tokamak

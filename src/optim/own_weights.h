// The pieces of weights in this rank's shard, which optimizers update.
#pragma once

#include <cstdint>
#include <vector>

#include "optim/weight_rules.h"
#include "zero/sharded_parameters.h"

namespace tokamak {

// The part of one weight in this rank's slice of its unit.
struct OwnWeight {
  int64_t unit = 0;
  size_t weight = 0;           // of the unit, in the order of flat_params
  int64_t begin = 0, end = 0;  // elements of the shard
  int64_t offset = 0;          // of the first, in the weight
  int64_t index = 0;           // of the first, in the flat units of the whole model
};

// In the order of the shard; none is empty.
std::vector<OwnWeight> own_weights(const ShardedParameters& parameters);

}  // namespace tokamak

// Converts statistics of tensors from what ranks measure (zero/) to what sinks write (monitor/).
#pragma once

#include <vector>

#include "monitor/record.h"
#include "zero/shard_statistics.h"

namespace tokamak {

std::vector<TensorRecord> tensor_records(const std::vector<WeightStatistics>& weights);

}  // namespace tokamak

// Statistics of tensors as the ranks have measured them (zero/), in the form in which sinks write them (monitor/).
#pragma once

#include <vector>

#include "monitor/record.h"
#include "zero/shard_statistics.h"

namespace tokamak {

std::vector<TensorRecord> tensor_records(const std::vector<WeightStatistics>& weights);

}  // namespace tokamak

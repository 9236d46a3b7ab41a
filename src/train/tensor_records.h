// Converts statistics of tensors from what ranks measure (zero/, model/) to what sinks write (monitor/).
#pragma once

#include <vector>

#include "model/activation_statistics.h"
#include "monitor/record.h"
#include "zero/shard_statistics.h"

namespace tokamak {

void append_records(const std::vector<WeightStatistics>& weights, std::vector<TensorRecord>& records);
void append_records(const std::vector<ActivationStatistics::Activation>& activations,
                    std::vector<TensorRecord>& records);

}  // namespace tokamak

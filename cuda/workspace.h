// Upper bounds of the scratch memory per family of operations in a run; defined in the family's file.
#pragma once

#include <cstdint>

#include "backend/ops.h"

namespace tokamak {

int64_t attention_backward_scratch(const Workload& workload);
int64_t cached_attention_scratch(const Workload& workload);
int64_t cross_entropy_scratch(const Workload& workload, int64_t logits_bytes);  // logits_bytes: limit for logits
int64_t embedding_backward_scratch(const Workload& workload);
int64_t rmsnorm_backward_scratch(const Workload& workload);
int64_t qk_norm_backward_scratch(const Workload& workload);
int64_t column_sums_scratch(const Workload& workload);
int64_t reduction_scratch();  // for sums and statistics

}  // namespace tokamak

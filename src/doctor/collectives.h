// The collectives of a training step on the data group: their results for numbers whose sums are exact, and their
// bandwidth at a small and a large size.
#pragma once

#include "backend/backend.h"
#include "doctor/check.h"

namespace tokamak::doctor {

struct CollectivesOptions {
  DType reduce = DType::kF32;  // the communication dtype of gradients
  int64_t most_bytes = 0;      // of the larger size; 0: by the device
  double seconds = 4;          // for all measurements
};

// `control` gathers the findings; `data` is tested.
CheckResult check_collectives(Comm& control, Comm& data, const RankHosts& peers, Device& device,
                              const CollectivesOptions& options);

}  // namespace tokamak::doctor

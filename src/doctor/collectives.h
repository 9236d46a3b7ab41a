// The collectives of a training step on the data group: their results, by numbers whose sums are exact, and their
// bandwidth at a small and a large size.
#pragma once

#include "backend/backend.h"
#include "doctor/check.h"

namespace tokamak::doctor {

struct CollectivesOptions {
  DType reduce = DType::kF32;  // of gradients on their way
  int64_t most_bytes = 0;      // of the larger size; 0: by the device
  double seconds = 4;          // for all measurements
};

// `control` gathers what the ranks found; `data` is what is tested.
CheckResult check_collectives(Comm& control, Comm& data, const RankHosts& peers, Device& device,
                              const CollectivesOptions& options);

}  // namespace tokamak::doctor

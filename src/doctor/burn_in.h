// The same GEMMs on every rank's device for a few seconds. They find a device that computes other bits than its equals,
// that computes other bits from time to time, or that is slower. (Llama 3, arXiv 2407.21783, table 5; silent data
// corruption: Dixit et al. 2021, arXiv 2102.11245.)
#pragma once

#include "backend/backend.h"
#include "doctor/check.h"

namespace tokamak::doctor {

struct BurnInOptions {
  double seconds = 3;
  DType dtype = DType::kBF16;
  int64_t most = 0;  // rows of the largest matrix; 0: by the device
};

CheckResult check_burn_in(Comm& comm, const RankHosts& peers, Backend& backend, const BurnInOptions& options);

// Judges the facts device, bits, rounds_of_other_bits, flops_per_second and share_of_cores.
void judge_burn_in(CheckResult& result, const RankHosts& peers);

}  // namespace tokamak::doctor

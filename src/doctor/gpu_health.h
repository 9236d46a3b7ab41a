// What the driver says of each host's GPUs, asked right after the burn-in, while they are warm: errors of their memory,
// reasons for a lower clock. (Xid errors are in the kernel's log, which NVML does not show.)
#pragma once

#include "doctor/check.h"
#include "doctor/nvml.h"

namespace tokamak::doctor {

// `ask` on the first rank of each host.
CheckResult check_gpus(Comm& comm, const RankHosts& peers, const std::function<GpuHealths()>& ask);

}  // namespace tokamak::doctor

// The driver's view of each host's GPUs right after the burn-in, while they are warm: memory errors and reasons for a
// lower clock. (Xid errors are in the kernel's log, which NVML does not show.)
#pragma once

#include "doctor/check.h"

namespace tokamak::doctor {

// Bits of throttle_reasons: nvmlClocksEventReason*, formerly nvmlClocksThrottleReason*.
inline constexpr int64_t kPowerCap = 0x4, kHardwareSlowdown = 0x8, kSoftwareThermal = 0x20, kHardwareThermal = 0x40,
                         kPowerBrake = 0x80;

// Asks NVIDIA's management library, opened where a driver has installed it: no header, no link, no CUDA. Returns
// `gpus`, their number, and `driver`, or why there are none: `missing`. GPU i has gpu<i>.name, gpu<i>.bus, ...; facts
// that GPU or driver do not report are missing.
Facts ask_nvml();

// Calls `ask` on the first rank of each host.
CheckResult check_gpus(Comm& comm, const RankHosts& peers, const std::function<Facts()>& ask);

}  // namespace tokamak::doctor

// The driver's view of each host's GPUs right after the burn-in, while they are warm: memory errors and reasons for a lower
// clock. (Xid errors are in the kernel's log, which NVML does not show.)
#pragma once

#include "doctor/check.h"

namespace tokamak::doctor {

struct GpuHealths {
  std::string missing;      // why there are none; "" otherwise
  std::string driver;       // "550.54.15"
  std::vector<Facts> gpus;  // name, bus, ...; a fact is missing where GPU or driver do not report it
};

// Bits of the fact throttle_reasons: nvmlClocksEventReason*, formerly nvmlClocksThrottleReason*.
inline constexpr int64_t kPowerCap = 0x4, kHardwareSlowdown = 0x8, kSoftwareThermal = 0x20, kHardwareThermal = 0x40,
                         kPowerBrake = 0x80;

// NVIDIA's management library, opened where a driver has installed it: no header, no link, no CUDA.
GpuHealths ask_nvml();

// Calls `ask` on the first rank of each host.
CheckResult check_gpus(Comm& comm, const RankHosts& peers, const std::function<GpuHealths()>& ask);

}  // namespace tokamak::doctor

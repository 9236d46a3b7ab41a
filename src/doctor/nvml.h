// NVIDIA's management library, opened where a driver has brought it: no header, no link, no CUDA. Its few functions are
// declared by hand as NVML's API reference (docs.nvidia.com/deploy/nvml-api) and NVIDIA's own binding have them
// (nvidia-ml-py 13, pynvml.py).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tokamak::doctor {

struct GpuHealth {
  std::string name;
  std::string bus;  // "00000000:19:00.0"
  int64_t total_bytes = 0, free_bytes = 0;
  // Empty: this GPU or driver does not say.
  std::optional<int64_t> uncorrected_errors;  // of memory and caches, since the driver was loaded
  std::optional<int64_t> uncorrected_errors_ever;
  std::optional<bool> remap_pending, remap_failed;           // of memory rows
  std::optional<int64_t> temperature, slowdown_temperature;  // degrees Celsius
  std::optional<int64_t> throttle;                           // reasons, as bits (kHardware...)
  std::optional<int64_t> milliwatts, most_milliwatts;        // now; its limit
  std::optional<int64_t> sm_megahertz, most_sm_megahertz, most_memory_megahertz;
  std::string capability;  // "9.0"
};

// nvmlClocksEventReason*, formerly nvmlClocksThrottleReason*.
inline constexpr int64_t kPowerCap = 0x4, kHardwareSlowdown = 0x8, kSoftwareThermal = 0x20, kHardwareThermal = 0x40,
                         kPowerBrake = 0x80;

struct GpuHealths {
  std::string missing;  // why there are none; "" where there are
  std::string driver;   // "550.54.15"
  std::vector<GpuHealth> gpus;
};

GpuHealths ask_nvml();

}  // namespace tokamak::doctor

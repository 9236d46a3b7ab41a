#include "doctor/nvml.h"

#include <dlfcn.h>

#include <array>

#include "base/strings.h"

namespace tokamak::doctor {

namespace {

constexpr const char* kLibrary = "libnvidia-ml.so.1";
constexpr int kSuccess = 0;
constexpr int kUncorrected = 1;                    // NVML_MEMORY_ERROR_TYPE_UNCORRECTED
constexpr int kSinceLoad = 0, kEver = 1;           // NVML_VOLATILE_ECC, NVML_AGGREGATE_ECC
constexpr int kTemperatureGpu = 0, kSlowdown = 1;  // NVML_TEMPERATURE_GPU, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
constexpr int kClockSm = 1, kClockMemory = 2;      // NVML_CLOCK_SM, NVML_CLOCK_MEM

using Handle = struct nvmlDevice_st*;
using Number = unsigned long long;
struct Memory {  // nvmlMemory_t
  Number total, free, used;
};
struct PciInfo {  // nvmlPciInfo_t of version 3
  std::array<char, 16> legacy;
  unsigned int domain, bus, device, pci_device, pci_subsystem;
  std::array<char, 32> id;
};

// A function of the library, or nothing in a driver without it.
class Nvml {
 public:
  Nvml() : handle_(dlopen(kLibrary, RTLD_LAZY | RTLD_LOCAL)) {}  // never closed: its threads may outlive us
  bool opened() const { return handle_ != nullptr; }

  template <class... Arguments>
  int call(const char* name, Arguments... arguments) const {
    constexpr int kNotFound = 13;  // NVML_ERROR_FUNCTION_NOT_FOUND
    void* const symbol = handle_ == nullptr ? nullptr : dlsym(handle_, name);
    return symbol == nullptr ? kNotFound : reinterpret_cast<int (*)(Arguments...)>(symbol)(arguments...);
  }

 private:
  void* handle_;
};

template <class T, class... Arguments>
std::optional<int64_t> ask(const Nvml& nvml, const char* name, Arguments... arguments) {
  T value{};
  if (nvml.call(name, arguments..., &value) != kSuccess) return std::nullopt;
  return static_cast<int64_t>(value);
}

GpuHealth health_of(const Nvml& nvml, Handle gpu) {
  GpuHealth health;
  std::array<char, 96> name{};
  if (nvml.call("nvmlDeviceGetName", gpu, name.data(), static_cast<unsigned int>(name.size())) == kSuccess) {
    health.name = name.data();
  }
  PciInfo pci{};
  if (nvml.call("nvmlDeviceGetPciInfo_v3", gpu, &pci) == kSuccess) health.bus = pci.id.data();
  Memory memory{};
  if (nvml.call("nvmlDeviceGetMemoryInfo", gpu, &memory) == kSuccess) {
    health.total_bytes = static_cast<int64_t>(memory.total);
    health.free_bytes = static_cast<int64_t>(memory.free);
  }
  health.uncorrected_errors = ask<Number>(nvml, "nvmlDeviceGetTotalEccErrors", gpu, kUncorrected, kSinceLoad);
  health.uncorrected_errors_ever = ask<Number>(nvml, "nvmlDeviceGetTotalEccErrors", gpu, kUncorrected, kEver);
  unsigned int corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  if (nvml.call("nvmlDeviceGetRemappedRows", gpu, &corrected, &uncorrected, &pending, &failed) == kSuccess) {
    health.remap_pending = pending != 0;
    health.remap_failed = failed != 0;
  }
  health.temperature = ask<unsigned int>(nvml, "nvmlDeviceGetTemperature", gpu, kTemperatureGpu);
  health.slowdown_temperature = ask<unsigned int>(nvml, "nvmlDeviceGetTemperatureThreshold", gpu, kSlowdown);
  health.throttle = ask<Number>(nvml, "nvmlDeviceGetCurrentClocksThrottleReasons", gpu);
  health.milliwatts = ask<unsigned int>(nvml, "nvmlDeviceGetPowerUsage", gpu);
  health.most_milliwatts = ask<unsigned int>(nvml, "nvmlDeviceGetEnforcedPowerLimit", gpu);
  health.sm_megahertz = ask<unsigned int>(nvml, "nvmlDeviceGetClockInfo", gpu, kClockSm);
  health.most_sm_megahertz = ask<unsigned int>(nvml, "nvmlDeviceGetMaxClockInfo", gpu, kClockSm);
  health.most_memory_megahertz = ask<unsigned int>(nvml, "nvmlDeviceGetMaxClockInfo", gpu, kClockMemory);
  int major = 0, minor = 0;
  if (nvml.call("nvmlDeviceGetCudaComputeCapability", gpu, &major, &minor) == kSuccess) {
    health.capability = str(major, ".", minor);
  }
  return health;
}

}  // namespace

GpuHealths ask_nvml() {
  const Nvml nvml;
  GpuHealths result;
  if (!nvml.opened()) {
    result.missing = str("no ", kLibrary, " on this machine");
    return result;
  }
  if (const int code = nvml.call("nvmlInit_v2"); code != kSuccess) {
    result.missing = str("nvmlInit gives error ", code);
    return result;
  }
  std::array<char, 96> driver{};
  if (nvml.call("nvmlSystemGetDriverVersion", driver.data(), static_cast<unsigned int>(driver.size())) == kSuccess) {
    result.driver = driver.data();
  }
  unsigned int count = 0;
  nvml.call("nvmlDeviceGetCount_v2", &count);
  for (unsigned int i = 0; i < count; ++i) {
    Handle gpu = nullptr;
    if (nvml.call("nvmlDeviceGetHandleByIndex_v2", i, &gpu) == kSuccess) result.gpus.push_back(health_of(nvml, gpu));
  }
  nvml.call("nvmlShutdown");
  if (result.gpus.empty()) result.missing = "the NVIDIA driver shows no GPU";
  return result;
}

}  // namespace tokamak::doctor

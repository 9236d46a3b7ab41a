// The driver's view of each host's GPUs right after the burn-in, while they are warm: memory errors and reasons for a
// lower clock. (Xid errors are in the kernel's log, which NVML does not show.)
#include <dlfcn.h>

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "doctor/checks.h"

namespace tokamak::doctor {

namespace {

// Declared by hand after NVML's API reference (docs.nvidia.com/deploy/nvml-api) and NVIDIA's Python binding
// (nvidia-ml-py 13, pynvml.py).
constexpr const char* kLibrary = "libnvidia-ml.so.1";
constexpr int kSuccess = 0;
constexpr int kUncorrected = 1;                    // NVML_MEMORY_ERROR_TYPE_UNCORRECTED
constexpr int kSinceLoad = 0, kEver = 1;           // NVML_VOLATILE_ECC, NVML_AGGREGATE_ECC
constexpr int kTemperatureGpu = 0, kSlowdown = 1;  // NVML_TEMPERATURE_GPU, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
constexpr int kClockSm = 1, kClockMemory = 2;      // NVML_CLOCK_SM, NVML_CLOCK_MEM

using Handle = struct nvmlDevice_st*;
using Whole = unsigned int;
using Long = unsigned long long;
struct Memory {  // nvmlMemory_t
  Long total, free, used;
};
struct PciInfo {  // nvmlPciInfo_t of version 3
  std::array<char, 16> legacy;
  Whole domain, bus, device, pci_device, pci_subsystem;
  std::array<char, 32> id;
};
using Text = std::array<char, 96>;

// The functions of the library by name. An older driver lacks some.
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

  // Sets `fact` to the number that a function returns in its last argument.
  template <class Value, class... Arguments>
  void ask(Facts& facts, const std::string& fact, const char* function, Arguments... arguments) const {
    Value value{};
    if (call(function, arguments..., &value) == kSuccess) facts.set(fact, static_cast<int64_t>(value));
  }

 private:
  void* handle_;
};

// Sets the facts of one GPU, whose names begin with `prefix`.
void add_gpu(Facts& facts, const std::string& prefix, const Nvml& nvml, Handle gpu) {
  Text name{};
  nvml.call("nvmlDeviceGetName", gpu, name.data(), static_cast<Whole>(name.size()));
  facts.set(prefix + "name", name.data());
  PciInfo pci{};
  nvml.call("nvmlDeviceGetPciInfo_v3", gpu, &pci);
  facts.set(prefix + "bus", pci.id.data());  // "00000000:19:00.0"
  Memory memory{};
  nvml.call("nvmlDeviceGetMemoryInfo", gpu, &memory);
  facts.set(prefix + "total_bytes", memory.total);
  facts.set(prefix + "free_bytes", memory.free);
  const char* const errors = "nvmlDeviceGetTotalEccErrors";  // of memory and caches
  nvml.ask<Long>(facts, prefix + "uncorrected_errors", errors, gpu, kUncorrected, kSinceLoad);
  nvml.ask<Long>(facts, prefix + "uncorrected_errors_ever", errors, gpu, kUncorrected, kEver);
  Whole corrected = 0, uncorrected = 0, pending = 0, failed = 0;  // memory rows
  if (nvml.call("nvmlDeviceGetRemappedRows", gpu, &corrected, &uncorrected, &pending, &failed) == kSuccess) {
    facts.set(prefix + "remap_pending", pending);
    facts.set(prefix + "remap_failed", failed);
  }
  nvml.ask<Whole>(facts, prefix + "temperature", "nvmlDeviceGetTemperature", gpu, kTemperatureGpu);  // degrees Celsius
  nvml.ask<Whole>(facts, prefix + "slowdown_temperature", "nvmlDeviceGetTemperatureThreshold", gpu, kSlowdown);
  nvml.ask<Long>(facts, prefix + "throttle_reasons", "nvmlDeviceGetCurrentClocksThrottleReasons", gpu);
  nvml.ask<Whole>(facts, prefix + "milliwatts", "nvmlDeviceGetPowerUsage", gpu);
  nvml.ask<Whole>(facts, prefix + "most_milliwatts", "nvmlDeviceGetEnforcedPowerLimit", gpu);
  nvml.ask<Whole>(facts, prefix + "sm_megahertz", "nvmlDeviceGetClockInfo", gpu, kClockSm);
  nvml.ask<Whole>(facts, prefix + "most_sm_megahertz", "nvmlDeviceGetMaxClockInfo", gpu, kClockSm);
  nvml.ask<Whole>(facts, prefix + "most_memory_megahertz", "nvmlDeviceGetMaxClockInfo", gpu, kClockMemory);
  int major = 0, minor = 0;
  nvml.call("nvmlDeviceGetCudaComputeCapability", gpu, &major, &minor);
  facts.set(prefix + "capability", str(major, ".", minor));
}

// NVIDIA's "GPU Debug Guidelines" and "GPU Memory Error Management": an uncorrectable error or a pending remapping asks
// for a reset of the GPU, a failed remapping for its replacement.
void judge_gpu(CheckResult& result, const std::string& host, const Facts& facts, int64_t gpu) {
  constexpr double kDegreesBelowSlowdown = 3;
  const auto fact = [&](const char* name) { return str("gpu", gpu, ".", name); };
  const auto add = [&](bool found, Status status, const std::string& text) {
    if (!found) return;
    result.add({status, host,
                str(host, ": GPU ", gpu, " (", facts.text(fact("name")), ", ", facts.text(fact("bus")), "): ", text)});
  };
  add(facts.number(fact("uncorrected_errors")) > 0, Status::kFail,
      facts.text(fact("uncorrected_errors")) +
          " uncorrected memory errors since the driver was loaded: reset the GPU, and replace it if they come back");
  add(facts.number(fact("remap_failed")) > 0, Status::kFail,
      "a faulty memory row could not be remapped: replace the GPU");
  add(facts.number(fact("remap_pending")) > 0, Status::kWarn,
      "a faulty memory row waits to be remapped: reset the GPU");
  const auto throttle = static_cast<int64_t>(facts.number(fact("throttle_reasons")));
  const bool brake = (throttle & kPowerBrake) != 0;
  const bool hardware = (throttle & (kHardwareSlowdown | kHardwareThermal)) != 0;
  add(brake, Status::kWarn, "the power supply has halved the clock (power brake)");
  add(hardware && !brake, Status::kWarn, "the hardware has lowered the clock: too hot, or power");
  add((throttle & kSoftwareThermal) != 0 && !hardware && !brake, Status::kWarn,
      "the driver has lowered the clock: too hot");
  const double degrees = facts.number(fact("temperature")), limit = facts.number(fact("slowdown_temperature"));
  add(limit > 0 && degrees > limit - kDegreesBelowSlowdown, Status::kWarn,
      str(degrees, " C, and at ", limit, " C it slows down"));
}

}  // namespace

Facts ask_nvml() {
  const Nvml nvml;
  Facts facts;
  if (!nvml.opened()) {
    facts.set("missing", str("no ", kLibrary, " on this machine"));
    return facts;
  }
  if (const int code = nvml.call("nvmlInit_v2"); code != kSuccess) {
    facts.set("missing", str("nvmlInit gives error ", code));
    return facts;
  }
  Text driver{};
  nvml.call("nvmlSystemGetDriverVersion", driver.data(), static_cast<Whole>(driver.size()));
  facts.set("driver", driver.data());
  Whole count = 0, found = 0;
  nvml.call("nvmlDeviceGetCount_v2", &count);
  for (Whole i = 0; i < count; ++i) {
    Handle gpu = nullptr;
    if (nvml.call("nvmlDeviceGetHandleByIndex_v2", i, &gpu) != kSuccess) continue;
    add_gpu(facts, str("gpu", found++, "."), nvml, gpu);
  }
  nvml.call("nvmlShutdown");
  facts.set("gpus", found);
  if (found == 0) facts.set("missing", "the NVIDIA driver shows no GPU");
  return facts;
}

CheckResult check_gpus(Comm& comm, const RankHosts& peers, const std::function<Facts()>& ask) {
  CheckResult result{.name = "gpus", .kind = Kind::kDevice};
  const std::vector<int> askers = peers.first_ranks();
  const bool asks = std::binary_search(askers.begin(), askers.end(), comm.rank());
  const bool asked = measure(result, comm, peers, [&](Facts& facts) {
    if (asks) facts = ask();
  });
  if (!asked) return result;
  const Facts& first = result.ranks.front();
  const std::vector<double> counts = result.numbers("gpus");
  const double most = *std::max_element(counts.begin(), counts.end());
  if (most == 0) return skipped(result.name, first.text("missing"));
  double gpus = 0;
  for (const int rank : askers) {
    const std::string& host = peers.host(rank);
    gpus += counts[rank];
    if (counts[rank] < most) {
      result.warn(host, str(host, " shows ", counts[rank], " GPU(s), another host ", most,
                            ": one may have fallen off the bus"));
    }
    for (int64_t gpu = 0; gpu < static_cast<int64_t>(counts[rank]); ++gpu) {
      judge_gpu(result, host, result.ranks[rank], gpu);
    }
  }
  result.value =
      str(gpus, " GPU(s) on ", askers.size(), " host(s), ", first.text("gpu0.name"), ", driver ", first.text("driver"));
  return result;
}

}  // namespace tokamak::doctor

#include "doctor/gpu_health.h"

#include <algorithm>

namespace tokamak::doctor {

namespace {

constexpr int64_t kDegreesBelowSlowdown = 3;

struct Finding {
  Status status;
  std::string text;
};

// NVIDIA's "GPU Debug Guidelines" and "GPU Memory Error Management": an uncorrectable error or a pending remapping asks
// for a reset of the GPU, a failed remapping for its replacement.
std::vector<Finding> findings_of(const GpuHealth& gpu) {
  std::vector<Finding> found;
  if (gpu.uncorrected_errors.value_or(0) > 0) {
    found.push_back({Status::kFail, str(*gpu.uncorrected_errors,
                                        " uncorrected memory errors since the driver was "
                                        "loaded: reset the GPU, and replace it if they come back")});
  }
  if (gpu.remap_failed.value_or(false)) {
    found.push_back({Status::kFail, "a faulty memory row could not be remapped: replace the GPU"});
  }
  if (gpu.remap_pending.value_or(false)) {
    found.push_back({Status::kWarn, "a faulty memory row waits to be remapped: reset the GPU"});
  }
  const int64_t throttle = gpu.throttle.value_or(0);
  const bool hardware = (throttle & (kHardwareSlowdown | kHardwareThermal | kPowerBrake)) != 0;
  if (hardware) {
    found.push_back({Status::kWarn, (throttle & kPowerBrake) != 0
                                        ? "the power supply has halved the clock (power brake)"
                                        : "the hardware has lowered the clock: too hot, or power"});
  } else if ((throttle & kSoftwareThermal) != 0) {
    found.push_back({Status::kWarn, "the driver has lowered the clock: too hot"});
  }
  if (gpu.temperature && gpu.slowdown_temperature &&
      *gpu.temperature > *gpu.slowdown_temperature - kDegreesBelowSlowdown) {
    found.push_back(
        {Status::kWarn, str(*gpu.temperature, " C, and at ", *gpu.slowdown_temperature, " C it slows down")});
  }
  return found;
}

template <class T>
void set_if(Facts& facts, const std::string& name, const std::optional<T>& value) {
  if (value) facts.set(name, static_cast<int64_t>(*value));
}

Facts facts_of(const GpuHealths& all) {
  Facts facts;
  facts.set("missing", all.missing);
  facts.set("driver", all.driver);
  facts.set("gpus", static_cast<int64_t>(all.gpus.size()));
  std::vector<std::string> fails, warns;
  for (size_t i = 0; i < all.gpus.size(); ++i) {
    const GpuHealth& gpu = all.gpus[i];
    const std::string prefix = str("gpu", i, ".");
    facts.set(prefix + "name", gpu.name);
    facts.set(prefix + "bus", gpu.bus);
    facts.set(prefix + "total_bytes", gpu.total_bytes);
    facts.set(prefix + "free_bytes", gpu.free_bytes);
    set_if(facts, prefix + "uncorrected_errors", gpu.uncorrected_errors);
    set_if(facts, prefix + "uncorrected_errors_ever", gpu.uncorrected_errors_ever);
    set_if(facts, prefix + "remap_pending", gpu.remap_pending);
    set_if(facts, prefix + "remap_failed", gpu.remap_failed);
    set_if(facts, prefix + "temperature", gpu.temperature);
    set_if(facts, prefix + "slowdown_temperature", gpu.slowdown_temperature);
    set_if(facts, prefix + "throttle_reasons", gpu.throttle);
    set_if(facts, prefix + "milliwatts", gpu.milliwatts);
    set_if(facts, prefix + "most_milliwatts", gpu.most_milliwatts);
    set_if(facts, prefix + "sm_megahertz", gpu.sm_megahertz);
    set_if(facts, prefix + "most_sm_megahertz", gpu.most_sm_megahertz);
    set_if(facts, prefix + "most_memory_megahertz", gpu.most_memory_megahertz);
    facts.set(prefix + "capability", gpu.capability);
    for (const Finding& finding : findings_of(gpu)) {
      (finding.status == Status::kFail ? fails : warns)
          .push_back(str("GPU ", i, " (", gpu.name, ", ", gpu.bus, "): ", finding.text));
    }
  }
  facts.set("fails", join(fails, "\n"));
  facts.set("warns", join(warns, "\n"));
  return facts;
}

}  // namespace

CheckResult check_gpus(Comm& comm, const RankHosts& peers, const std::function<GpuHealths()>& ask) {
  CheckResult result{.name = "gpus", .kind = Kind::kDevice};
  const std::vector<int> askers = peers.first_ranks();
  const bool asks = std::count(askers.begin(), askers.end(), comm.rank()) > 0;
  result.ranks = gather_facts(comm, [&] { return asks ? facts_of(ask()) : Facts(); });
  if (report_errors(result, peers)) return result;
  const Facts& first = result.ranks.front();
  const bool none = std::all_of(askers.begin(), askers.end(),
                                [&](int r) { return result.ranks[static_cast<size_t>(r)].number("gpus") == 0; });
  if (none) return skipped(result.name, first.text("missing"));
  int64_t gpus = 0;
  std::vector<double> counts;
  for (const int rank : askers) counts.push_back(result.ranks[static_cast<size_t>(rank)].number("gpus"));
  for (const int rank : askers) {
    const Facts& facts = result.ranks[static_cast<size_t>(rank)];
    const std::string& host = peers.host(rank);
    gpus += static_cast<int64_t>(facts.number("gpus"));
    if (facts.number("gpus") < *std::max_element(counts.begin(), counts.end())) {
      result.warn(host, str(host, " shows ", facts.text("gpus"), " GPU(s), another host ",
                            *std::max_element(counts.begin(), counts.end()), ": one may have fallen off the bus"));
    }
    for (const auto& [list, status] : {std::pair("fails", Status::kFail), std::pair("warns", Status::kWarn)}) {
      for (const std::string& line : split(facts.text(list), '\n')) {
        if (!line.empty()) result.add({status, host, str(host, ": ", line)});
      }
    }
  }
  result.value =
      str(gpus, " GPU(s) on ", askers.size(), " host(s), ", first.text("gpu0.name"), ", driver ", first.text("driver"));
  return result;
}

}  // namespace tokamak::doctor

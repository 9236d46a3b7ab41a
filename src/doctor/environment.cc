#include "doctor/environment.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "base/strings.h"
#include "doctor/environment_rules.h"

namespace tokamak::doctor {

namespace {

constexpr double kSwapInUse = 0.02;  // of the memory; idle pages may be less

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

double meminfo(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!starts_with(line, key)) continue;
    double kilobytes = 0;
    std::istringstream(line.substr(key.size())) >> kilobytes;
    return kilobytes * 1024;
  }
  return 0;
}

}  // namespace

std::vector<std::string> gpu_libraries(const std::vector<std::string>& paths) {
  std::vector<std::string> found;
  for (const std::string& path : paths) {
    const std::string name = path.substr(path.rfind('/') + 1);
    for (const char* const prefix : {"libcublas", "libcud", "libnv", "libnccl"}) {
      if (starts_with(name, prefix)) found.push_back(path);
    }
  }
  return found;
}

std::vector<std::string> hurtful_variables(const Variables& variables, const Surroundings& here) {
  std::vector<std::string> found;
  for (const VariableRule& rule : kVariableRules) {
    const char* const value = variables(rule.name);
    if (value == nullptr || !rule.applies(here) || !rule.hurts(value, here)) continue;
    found.push_back(str(rule.name, "='", value, "': ", rule.effect, "; instead: ", rule.remedy));
  }
  return found;
}

std::vector<std::string> hurtful_settings(const Surroundings& here) {
  std::vector<std::string> found;
  if (here.threads * here.ranks_on_cores > here.cores) {
    found.push_back(
        str(here.ranks_on_cores, " rank(s) of ", here.threads, " thread(s) share ", here.cores,
            " core(s): threads wait for each other; instead: fewer ranks, or runtime.threads_per_rank: auto"));
  }
  const int usable = here.cores * std::max(1, here.ranks_on_host / here.ranks_on_cores);
  if (!here.on_gpu && usable < here.host_cores / 2) {
    found.push_back(str("the ranks of this host may run on ", usable, " of its ", here.host_cores,
                        " cores; instead: mpirun --bind-to none, or more --cpus-per-task"));
  }
  // Buffers ask for huge pages (backend/cpu/device.cc); Documentation/admin-guide/mm/transhuge.rst.
  if (!here.on_gpu &&
      first_line(here.system + "/sys/kernel/mm/transparent_hugepage/enabled").find("[never]") != std::string::npos) {
    found.emplace_back(
        "transparent huge pages are off: buffers take 512 times the page table entries; instead: echo madvise > "
        "/sys/kernel/mm/transparent_hugepage/enabled");
  }
  // powersave is the lowest frequency (Documentation/admin-guide/pm/cpufreq.rst), except with the drivers intel_pstate and
  // amd-pstate, where the processor scales by load (intel_pstate.rst, amd-pstate.rst).
  const std::string cpufreq = here.system + "/sys/devices/system/cpu/cpu0/cpufreq/";
  const std::string driver = first_line(cpufreq + "scaling_driver");
  if (first_line(cpufreq + "scaling_governor") == "powersave" && driver != "intel_pstate" &&
      driver != "amd-pstate-epp") {
    found.push_back(str("the governor powersave (", driver,
                        ") keeps the lowest frequency; instead: cpupower frequency-set -g performance"));
  }
  const std::string memory = here.system + "/proc/meminfo";
  const double swapped = meminfo(memory, "SwapTotal:") - meminfo(memory, "SwapFree:");
  if (swapped > kSwapInUse * meminfo(memory, "MemTotal:")) {
    found.push_back(str(human_bytes(swapped), " are swapped out: an access to them waits for a disk; instead: end the ",
                        "programs that use the memory, then swapoff -a"));
  }
  return found;
}

CheckResult check_environment(Comm& comm, const RankHosts& peers, const Variables& variables,
                              const Surroundings& here) {
  CheckResult result{.name = "environment", .kind = Kind::kConfig};
  const bool looked = measure(result, comm, peers, [&](Facts& facts) {
    std::vector<std::string> found = hurtful_variables(variables, here);
    for (const std::string& setting : hurtful_settings(here)) found.push_back(setting);
    facts.set("hurts", join(found, "\n"));
    facts.set("threads", here.threads);
    facts.set("cores", here.cores);
  });
  if (!looked) return result;
  std::map<std::string, std::set<std::string>> hosts_of;  // by setting
  for (int rank = 0; rank < peers.size(); ++rank) {
    for (const std::string& line : split(result.ranks[rank].text("hurts"), '\n')) {
      if (!line.empty()) hosts_of[line].insert(peers.host(rank));
    }
  }
  for (const auto& [line, hosts] : hosts_of) {
    const bool everywhere = hosts.size() == peers.hosts().size();
    result.warn(hosts.size() == 1 && !everywhere ? *hosts.begin() : "",
                everywhere ? line : str(join({hosts.begin(), hosts.end()}, " "), ": ", line));
  }
  const Facts& first = result.ranks.front();
  result.value = str(first.text("threads"), " thread(s) a rank on ", first.text("cores"), " core(s)");
  return result;
}

}  // namespace tokamak::doctor

#include "doctor/environment.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "doctor/environment_rules.h"

namespace tokamak::doctor {

namespace {

constexpr double kSwapInUse = 0.02;  // of the memory; less is what no program needs

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

constexpr std::array kGpuLibraries = {"libcublas", "libcud", "libnv", "libnccl"};

}  // namespace

std::vector<std::string> gpu_libraries(const std::vector<std::string>& paths) {
  std::vector<std::string> found;
  std::copy_if(paths.begin(), paths.end(), std::back_inserter(found), [](const std::string& path) {
    const std::string name = path.substr(path.rfind('/') + 1);
    return std::any_of(kGpuLibraries.begin(), kGpuLibraries.end(),
                       [&](const char* prefix) { return starts_with(name, prefix); });
  });
  return found;
}

std::vector<std::string> hurtful_variables(const Variables& variables, const Surroundings& here) {
  std::vector<std::string> found;
  for (const VariableRule& rule : kVariableRules) {
    const char* const value = variables(rule.name);
    if (value == nullptr || !rule.hurts(value, here)) continue;
    found.push_back(str(rule.name, "='", value, "': ", rule.happens, "; instead: ", rule.instead));
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
  // Documentation/admin-guide/pm/cpufreq.rst: powersave is the lowest frequency; but intel_pstate.rst and amd-pstate.rst:
  // by these drivers' own powersave the processor scales by load.
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
    found.push_back(str(human_bytes(swapped),
                        " are swapped out: what touches them waits for a disk; instead: end what takes "
                        "the memory, then swapoff -a"));
  }
  return found;
}

CheckResult check_environment(Comm& comm, const RankHosts& peers, const Variables& variables,
                              const Surroundings& here) {
  CheckResult result{.name = "environment", .kind = Kind::kConfig};
  result.ranks = gather_facts(comm, [&] {
    std::vector<std::string> found = hurtful_variables(variables, here);
    for (const std::string& setting : hurtful_settings(here)) found.push_back(setting);
    Facts facts;
    facts.set("hurts", join(found, "\n"));
    facts.set("threads", int64_t{here.threads});
    facts.set("cores", int64_t{here.cores});
    return facts;
  });
  if (report_errors(result, peers)) return result;
  std::map<std::string, std::vector<std::string>> hosts_of;  // what hurts: where
  for (const std::string& host : peers.hosts()) {
    for (const int rank : peers.ranks_of(host)) {
      for (const std::string& line : split(result.ranks[static_cast<size_t>(rank)].text("hurts"), '\n')) {
        std::vector<std::string>& hosts = hosts_of[line];
        if (!line.empty() && (hosts.empty() || hosts.back() != host)) hosts.push_back(host);
      }
    }
  }
  for (const auto& [line, hosts] : hosts_of) {
    if (line.empty()) continue;
    const bool everywhere = hosts.size() == peers.hosts().size();
    result.warn(hosts.size() == 1 && !everywhere ? hosts.front() : "",
                everywhere ? line : str(join(hosts, " "), ": ", line));
  }
  const Facts& first = result.ranks.front();
  result.value = str(first.text("threads"), " thread(s) a rank on ", first.text("cores"), " core(s)");
  return result;
}

}  // namespace tokamak::doctor

// Settings of a process and its machine that slow training down or break it, each with its effect and remedy.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "base/strings.h"
#include "doctor/checks.h"

namespace tokamak::doctor {

namespace {

using Value = const std::string&;
using Here = const Surroundings&;

// An environment variable that hurts where the rule applies and its value is of this kind.
struct VariableRule {
  const char* name;
  bool (*applies)(Here here);
  bool (*hurts)(Value value, Here here);
  const char* effect;
  const char* remedy;
};

bool anywhere(Here) { return true; }
bool on_cpu(Here here) { return !here.on_gpu; }
bool on_gpus(Here here) { return here.on_gpu && here.ranks > 1; }
bool on_gpu_hosts(Here here) { return here.on_gpu && here.hosts > 1; }
bool on_shared_cores(Here here) { return here.ranks_on_cores > 1; }

bool is_set(Value value, Here) { return !value.empty(); }
bool is_on(Value value, Here) { return !value.empty() && value != "0"; }

// Every row has a source, by number:
//  [1] NCCL user guide, Environment Variables (docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html): what each
//      variable disables; those of its section "Debugging" "should not be used in production".
//  [2] CUDA C++ programming guide, CUDA Environment Variables: CUDA_LAUNCH_BLOCKING, CUDA_VISIBLE_DEVICES.
//  [3] OpenMP API 5.2, chapter 21, and libgomp's manual, chapter 3: OMP_PROC_BIND, GOMP_CPU_AFFINITY, OMP_THREAD_LIMIT,
//      OMP_DYNAMIC (libgomp takes the load average into account), OMP_WAIT_POLICY.
//  [4] mallopt(3): MALLOC_CHECK_ (slower, tests each call) and MALLOC_PERTURB_ (fills each block).
//  [5] ld.so(8): LD_PRELOAD is loaded before all others and may replace any function.
//  [6] oneDNN developer guide, "CPU Dispatcher Control" and "Verbose Mode"; DNNL_ is the older prefix of each.
constexpr VariableRule kVariableRules[] = {
    {"CUDA_LAUNCH_BLOCKING", anywhere, is_on,  // [2]
     "each kernel ends before the next is launched: no overlap of computing and communication", "unset it"},
    {"CUDA_VISIBLE_DEVICES", anywhere, [](Value v, Here) { return v.empty() || v == "-1"; },  // [2]
     "it hides all GPUs: the run uses the CPU, or ends", "unset it, or list the GPUs"},
    {"NCCL_DEBUG", anywhere, [](Value v, Here here) { return here.on_gpu && v == "TRACE"; },  // [1]
     "NCCL prints a line for every call", "WARN"},
    {"NCCL_P2P_DISABLE", on_gpus, is_on, "GPUs of a host do not use NVLink or PCIe directly", "unset it"},  // [1]
    {"NCCL_SHM_DISABLE", on_gpus, is_on,                                                                    // [1]
     "ranks of a host that lack peer access talk over the network", "unset it"},
    {"NCCL_IB_DISABLE", on_gpu_hosts, is_on,  // [1]
     "hosts talk over IP sockets instead of InfiniBand or RoCE", "unset it where there is such a network"},
    {"NCCL_SOCKET_IFNAME", on_gpu_hosts, [](Value v, Here) { return v == "lo"; },  // [1]
     "the loopback interface reaches no other host", "the interface of the network, or unset it"},
    {"NCCL_ALGO", on_gpus, is_set, "NCCL cannot choose the fastest algorithm for a size", "unset it"},  // [1]
    {"NCCL_PROTO", on_gpus, is_set,                                                                     // [1]
     "NCCL cannot choose its protocol; one that the platform lacks corrupts data", "unset it"},
    {"OMP_PROC_BIND", on_shared_cores, [](Value v, Here) { return !v.empty() && v != "false"; },  // [3]
     "each of the ranks that share these cores binds its threads to the same first ones",
     "unset it, or let the launcher give each rank cores of its own"},
    {"GOMP_CPU_AFFINITY", on_shared_cores, is_set,  // [3]
     "each of the ranks that share these cores binds its threads to the same ones",
     "unset it, or let the launcher give each rank cores of its own"},
    {"OMP_THREAD_LIMIT", anywhere,  // [3]
     [](Value v, Here here) { return !v.empty() && std::atoi(v.c_str()) < here.threads; },
     "fewer threads than runtime.threads_per_rank asks for", "unset it"},
    {"OMP_DYNAMIC", anywhere, [](Value v, Here) { return v == "true" || v == "TRUE"; },  // [3]
     "the number of threads follows the load of the machine, and so does the speed", "unset it"},
    {"OMP_WAIT_POLICY", [](Here here) { return here.threads * here.ranks_on_cores > here.cores; },  // [3]
     [](Value v, Here) { return v == "active" || v == "ACTIVE"; },
     "waiting threads keep the cores from those that compute", "unset it"},
    {"MALLOC_CHECK_", anywhere, is_on, "malloc tests its lists at each call", "unset it"},                       // [4]
    {"MALLOC_PERTURB_", anywhere, is_on, "malloc writes to each block that it allocates or frees", "unset it"},  // [4]
    {"LD_PRELOAD", anywhere, is_set,                                                                             // [5]
     "a library replaces functions of this program", "unset it, unless you know that it is harmless"},
    {"ONEDNN_VERBOSE", on_cpu, is_on, "oneDNN prints a line for every GEMM", "unset it"},                // [6]
    {"DNNL_VERBOSE", on_cpu, is_on, "oneDNN prints a line for every GEMM", "unset it"},                  // [6]
    {"ONEDNN_MAX_CPU_ISA", on_cpu, is_set, "oneDNN uses no newer instructions than these", "unset it"},  // [6]
    {"DNNL_MAX_CPU_ISA", on_cpu, is_set, "oneDNN uses no newer instructions than these", "unset it"},    // [6]
};

constexpr double kSwapInUse = 0.02;  // share of the memory; idle pages may swap less than this

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
  // powersave is the lowest frequency (Documentation/admin-guide/pm/cpufreq.rst), except with the drivers intel_pstate
  // and amd-pstate, where the processor scales by load (intel_pstate.rst, amd-pstate.rst).
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

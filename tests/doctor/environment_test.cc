#include "doctor/checks.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>

#include "doctor/planted.h"
#include "support/ranks.h"
#include "support/temp_dir.h"

using namespace tokamak;
using namespace tokamak::doctor;

namespace {

Variables variables_of(const std::map<std::string, std::string>& values) {
  return [values](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  };
}

void put(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text << "\n";
}

constexpr Surroundings gpus() { return {.ranks = 16, .hosts = 2, .on_gpu = true}; }

}  // namespace

TEST_CASE("variables that hurt are listed with their value, harmless values are not") {
  struct Case {
    const char *name, *value;
    bool hurts;
    Surroundings here;
  };
  Surroundings sharing;
  sharing.ranks_on_cores = 2;
  for (const Case& c : {Case{"CUDA_LAUNCH_BLOCKING", "1", true, {}},
                        Case{"CUDA_LAUNCH_BLOCKING", "0", false, {}},
                        Case{"CUDA_VISIBLE_DEVICES", "", true, {}},
                        Case{"CUDA_VISIBLE_DEVICES", "0,1", false, {}},
                        Case{"NCCL_DEBUG", "TRACE", true, gpus()},
                        Case{"NCCL_DEBUG", "WARN", false, gpus()},
                        Case{"NCCL_DEBUG", "TRACE", false, {}},
                        Case{"NCCL_P2P_DISABLE", "1", true, gpus()},
                        Case{"NCCL_IB_DISABLE", "1", true, gpus()},
                        Case{"NCCL_IB_DISABLE", "0", false, gpus()},
                        Case{"NCCL_SOCKET_IFNAME", "lo", true, gpus()},
                        Case{"OMP_PROC_BIND", "true", true, sharing},
                        Case{"OMP_PROC_BIND", "false", false, sharing},
                        Case{"OMP_PROC_BIND", "true", false, {}},
                        Case{"OMP_THREAD_LIMIT", "0", true, {}},
                        Case{"OMP_THREAD_LIMIT", "1", false, {}},
                        Case{"MALLOC_CHECK_", "3", true, {}},
                        Case{"LD_PRELOAD", "libx.so", true, {}},
                        Case{"LD_PRELOAD", "", false, {}},
                        Case{"ONEDNN_MAX_CPU_ISA", "SSE41", true, {}}}) {
    INFO(c.name << "='" << c.value << "'");
    const std::vector<std::string> found = hurtful_variables(variables_of({{c.name, c.value}}), c.here);
    CHECK(found.size() == (c.hurts ? 1 : 0));
    if (c.hurts && !found.empty()) CHECK(found.front().find(str(c.name, "='", c.value, "': ")) == 0);
  }
}

TEST_CASE("settings of the machine that hurt are read from its files") {
  const TempDir root;
  Surroundings here{.threads = 2, .cores = 2, .host_cores = 2, .system = root.path()};
  CHECK(hurtful_settings(here).empty());  // files that are not there say nothing
  put(root.file("sys/kernel/mm/transparent_hugepage/enabled"), "always [madvise] never");
  put(root.file("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"), "powersave");
  put(root.file("sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"), "intel_pstate");
  put(root.file("proc/meminfo"), "MemTotal: 1000 kB\nSwapTotal: 500 kB\nSwapFree: 490 kB");
  CHECK(hurtful_settings(here).empty());
  put(root.file("sys/kernel/mm/transparent_hugepage/enabled"), "always madvise [never]");
  put(root.file("sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"), "acpi-cpufreq");
  put(root.file("proc/meminfo"), "MemTotal: 1000 kB\nSwapTotal: 500 kB\nSwapFree: 400 kB");
  CHECK(hurtful_settings(here).size() == 3);
  here.threads = 3;
  here.host_cores = 64;
  CHECK(hurtful_settings(here).size() == 5);
}

RANKS_CASE("what hurts on one host is that host's, what hurts everywhere is nobody's") {
  if (world.size() < 2) return;
  const TempDir root;
  const Surroundings here{.system = root.path()};
  std::map<std::string, std::string> own{{"MALLOC_CHECK_", "3"}};
  if (world.rank() == 1) own["LD_PRELOAD"] = "libx.so";
  const CheckResult result = check_environment(world.comm(), a_host_each(world.size()), variables_of(own), here);
  CHECK(result.status == Status::kWarn);
  CHECK(result.notes.size() == 2);
  CHECK(says(result, "warn n1: n1: LD_PRELOAD='libx.so'"));
  CHECK(says(result, "warn : MALLOC_CHECK_='3'"));
}

TEST_CASE("of the loaded libraries, those of NVIDIA are listed by their paths") {
  const std::vector<std::string> loaded = {"/lib/libc.so.6",       "/lib/libcurl.so.4",  "/a/libcudnn.so.9",
                                           "/b/libcublasLt.so.13", "/a/libcuda.so.1",    "/a/libnvrtc.so.13",
                                           "/c/libnccl.so.2",      "/libcudnn/libm.so.6"};
  const std::vector<std::string> made_by_nvidia(loaded.begin() + 2, loaded.begin() + 7);
  CHECK(gpu_libraries(loaded) == made_by_nvidia);
}

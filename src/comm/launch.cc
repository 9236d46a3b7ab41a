#include "comm/launch.h"

#include <charconv>
#include <cstdint>

#include "base/error.h"
#include "base/printable.h"
#include "base/strings.h"

namespace tokamak {

namespace {

// Derived ports are below 32768, where Linux begins to assign ports.
constexpr int kFirstPort = 12000;
constexpr int kPorts = 20000;
constexpr int kLastPort = 65535;
constexpr int64_t kMostRanks = 1 << 24;
constexpr size_t kShortestSecret = 16;  // characters, since a stranger can test guesses against a proof

class Environment {
 public:
  explicit Environment(const Variables& variables) : variables_(variables) {}

  bool has(const char* name) const { return variables_(name) != nullptr; }
  std::string text(const char* name) const {
    const char* value = variables_(name);
    return value == nullptr ? "" : value;
  }

  // Returns the variable's number, in [low, high]. `reason` says why the variable is required.
  int number(const char* name, int64_t low, int64_t high, const std::string& reason) const {
    return static_cast<int>(whole(name, low, high, reason));
  }
  int64_t whole(const char* name, int64_t low, int64_t high, const std::string& reason) const {
    const std::string value = text(name);
    if (!has(name)) fail(Kind::kConfig, str(name, " is not set, but ", reason));
    int64_t result = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    if (error != std::errc() || end != value.data() + value.size()) {
      fail(Kind::kConfig, str(name, " is '", printable(value), "', which is not a number; ", reason));
    }
    if (result < low || result > high) {
      fail(Kind::kConfig, str(name, " is ", printable(value), ", not in ", low, " to ", high, "; ", reason));
    }
    return result;
  }

  std::string said(const char* name) const { return str(name, " is ", printable(text(name))); }

 private:
  const Variables& variables_;
};

void read_local(const Environment& environment, const std::string& reason, ProcessLaunch& launch) {
  if (environment.has("LOCAL_WORLD_SIZE"))
    launch.local_size = environment.number("LOCAL_WORLD_SIZE", 1, launch.size, reason);
  if (environment.has("LOCAL_RANK")) {
    const int size = launch.local_size > 0 ? launch.local_size : launch.size;
    launch.local_rank = environment.number("LOCAL_RANK", 0, size - 1, reason);
  }
}

int port_from(const Environment& environment, const std::string& reason) {
  return environment.number("MASTER_PORT", 1, kLastPort, reason);
}

// Reads the variables that torchrun and most cluster tools set.
ProcessLaunch by_variables(const Environment& environment) {
  ProcessLaunch launch;
  launch.size = environment.number("WORLD_SIZE", 1, kMostRanks, environment.said("RANK"));
  const std::string reason = environment.said("WORLD_SIZE");
  launch.rank = environment.number("RANK", 0, launch.size - 1, reason);
  if (launch.size == 1) return launch;
  launch.launcher = Launcher::kTcp;
  read_local(environment, reason, launch);
  launch.address = environment.text("MASTER_ADDR");
  if (launch.address.empty()) {
    fail(Kind::kConfig, str("MASTER_ADDR is not set, but ", reason), "set it to a name or address of rank 0's host");
  }
  launch.port = port_from(environment, reason);
  launch.job = str("run '", environment.text("TORCHELASTIC_RUN_ID"), "'");
  return launch;
}

// A step of several tasks under srun. A batch script has SLURM_NTASKS and SLURM_PROCID too, but no SLURM_STEP_*.
ProcessLaunch by_slurm(const Environment& environment) {
  const char* tasks = environment.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  ProcessLaunch launch;
  launch.size = environment.number(tasks, 1, kMostRanks, environment.said("SLURM_STEP_ID"));
  if (launch.size == 1) return launch;
  const std::string reason = environment.said(tasks);
  launch.launcher = Launcher::kTcp;
  launch.rank = environment.number("SLURM_PROCID", 0, launch.size - 1, reason);
  if (environment.has("SLURM_LOCALID"))
    launch.local_rank = environment.number("SLURM_LOCALID", 0, launch.size - 1, reason);
  const int64_t job = environment.whole("SLURM_JOB_ID", 0, UINT32_MAX, reason);
  const int64_t step = environment.whole("SLURM_STEP_ID", 0, UINT32_MAX, reason);
  launch.job = str("Slurm job ", job, ".", step);
  if (environment.has("SLURM_RESTART_COUNT")) launch.job += str(", restart ", environment.text("SLURM_RESTART_COUNT"));
  launch.address = environment.text("MASTER_ADDR");
  if (launch.address.empty()) {
    const bool of_step = environment.has("SLURM_STEP_NODELIST");
    launch.address = first_host(environment.text(of_step ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST"));
  }
  const bool chosen = environment.has("MASTER_PORT");
  launch.port = chosen ? port_from(environment, reason) : kFirstPort + static_cast<int>((job * 16 + step) % kPorts);
  return launch;
}

// Refuses a launcher whose tasks would each take themselves for the whole run: N models in one directory.
void refuse_other_launchers(const Environment& environment) {
  if (!environment.has("PMI_SIZE")) return;
  if (environment.text("PMI_SIZE") == environment.text("SLURM_STEP_NUM_TASKS")) return;  // srun --mpi=pmi2
  if (environment.number("PMI_SIZE", 1, kMostRanks, "a launcher set it") == 1) return;
  fail(Kind::kConfig, str(environment.said("PMI_SIZE"), ": one of several tasks, but their launcher offers no PMIx"),
       "start with mpirun of Open MPI, with srun, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT");
}

std::string read_secret(const Environment& environment) {
  std::string secret = environment.text("TOKAMAK_SECRET");
  if (environment.has("TOKAMAK_SECRET") && secret.size() < kShortestSecret) {
    fail(Kind::kConfig,
         str("TOKAMAK_SECRET has ", secret.size(), " characters, but at least ", kShortestSecret, " are needed"),
         "openssl rand -hex 32 makes one; the same for all ranks, or unset it");
  }
  return secret;
}

ProcessLaunch launch_of(const Environment& environment) {
  if (environment.has("OMPI_COMM_WORLD_SIZE") || environment.has("PMIX_RANK")) return {.launcher = Launcher::kMpi};
  if (environment.has("RANK") || environment.has("WORLD_SIZE")) return by_variables(environment);
  refuse_other_launchers(environment);
  if (environment.has("SLURM_STEP_NUM_TASKS") || environment.has("SLURM_STEP_ID")) return by_slurm(environment);
  return {};
}

}  // namespace

ProcessLaunch find_launch(const Variables& variables) {
  const Environment environment(variables);
  ProcessLaunch launch = launch_of(environment);
  if (launch.launcher != Launcher::kNone) launch.secret = read_secret(environment);
  return launch;
}

std::string first_host(const std::string& nodes) {
  std::string host;
  for (size_t at = 0; at < nodes.size() && nodes[at] != ','; ++at) {
    if (nodes[at] != '[') {
      host += nodes[at];
      continue;
    }
    const size_t close = nodes.find(']', at);
    if (close == std::string::npos)
      fail(Kind::kConfig, str("Slurm's list of nodes '", printable(nodes), "' lacks a ']'"));
    host += nodes.substr(at + 1, nodes.find_first_of("-,]", at) - at - 1);
    at = close;
  }
  if (host.empty())
    fail(Kind::kConfig, str("Slurm's list of nodes '", printable(nodes), "' names no host"), "set MASTER_ADDR");
  return host;
}

}  // namespace tokamak

// Checks memory and limits of each host, and whether the run of a config fits.
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>

#include "base/median.h"
#include "base/process.h"
#include "base/strings.h"
#include "comm/lane.h"
#include "comm/mesh.h"
#include "doctor/checks.h"
#include "train/auto_choice.h"
#include "train/memory_check.h"
#include "train/run_data.h"
#include "train/run_plan.h"

namespace tokamak::doctor {

namespace {

constexpr double kLessThanOthers = 0.9;  // of the median host
// Sockets of a rank over TCP (comm/README.md); files, libraries and the data set.
constexpr int64_t kFilesPerPeer = kLanes + 1, kOtherFiles = 128;
// NCCL's user guide asks containers for it (docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html,
// "Shared Memory": --shm-size=1g --ulimit memlock=-1).
constexpr double kSharedMemoryForNccl = 1 << 30;

int64_t limit_of(__rlimit_resource resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return -1;
  return static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, INT64_MAX));
}

void measure_memory(Facts& facts, const Device& device) {
  const int64_t physical = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE);
  const int64_t usable = total_memory_bytes();
  facts.set("host_total_bytes", physical);
  facts.set("host_available_bytes", available_memory_bytes());
  if (usable < physical / 100 * 99) facts.set("control_group_limit_bytes", usable);
  facts.set("device_total_bytes", device.total_bytes());
  facts.set("device_available_bytes", device.available_bytes());
  facts.set("device_is_host", int{device.uses_host_memory()});
  facts.set("limit_memlock_bytes", limit_of(RLIMIT_MEMLOCK));  // -1: none
  facts.set("limit_open_files", limit_of(RLIMIT_NOFILE));
  struct statvfs shm {};
  if (statvfs("/dev/shm", &shm) != 0) return;
  facts.set("shared_memory_bytes", shm.f_blocks * shm.f_frsize);
  facts.set("shared_memory_free_bytes", shm.f_bavail * shm.f_frsize);
}

// The plan of every rank against its share of the memory. Returns the result's value, or "" if the plan does not fit.
std::string compare_plan(CheckResult& result, World& world, const RankHosts& peers, Backend& backend, Comm& data,
                         const RunConfig& stated) {
  // A start chooses settings that fit. So the check plans those that need the least memory.
  const RunConfig config = leaves_choice(stated) ? with_choice(stated, least_choice(stated)) : stated;
  const Device& device = *backend.device;
  int replicas = 1;
  const auto find_replicas = [&](Facts&) { replicas = replicas_of(config.parallelism, world.size()); };
  if (!measure(result, world.comm(), peers, find_replicas)) return "";
  // The groups of a run take memory and reserve more, so they must exist before memory_share().
  const MeshGroups groups(data, replicas);
  const MemoryShare share = memory_share(device, world, groups.mesh(), config.runtime);
  const auto plan = [&](Facts& facts) {
    int64_t most = 0;  // of the stage that needs most
    facts.set("share_bytes", share.available);
    facts.set("reserve_bytes", share.reserve);
    for (const StageRow& row : stage_rows(config)) {
      const RunConfig own = config_of_row(config, row);
      const GlobalBatch batch = make_global_batch(own, world.size());
      const PlannedRun run =
          plan_run(own, batch, groups.mesh(), backend, PlanFor::kTraining, share.total, share.available);
      most = std::max(most, planned_bytes(run.engine->plan(), device));
      facts.set("planned_bytes", most);
      try {
        expect_fit(run.engine->plan(), device, share, own, run.shape.micro_batch,
                   read_ahead_bytes(own, run.shape.micro_batch));
      } catch (const Error& error) {  // leaves out the plan, which is a page long
        fail(error.kind(), error.what(), error.hint().substr(0, error.hint().find("\nplan:")));
      }
    }
  };
  if (!measure(result, world.comm(), peers, plan)) return "";
  return str(human_bytes(result.ranks.front().number("planned_bytes")), " planned of ",
             human_bytes(result.ranks.front().number("share_bytes")), " available to each rank");
}

void judge_host(CheckResult& result, const RankHosts& peers, int rank, double median_total) {
  const Facts& facts = result.ranks[rank];
  const std::string& host = peers.host(rank);
  const bool gpus = facts.number("device_is_host") == 0;
  const double total = facts.number("host_total_bytes"), shared = facts.number("shared_memory_bytes");
  if (total < kLessThanOthers * median_total) {
    result.warn(host, str(host, " has ", human_bytes(total), " of memory, the median host ", human_bytes(median_total),
                          ": a module may be missing"));
  }
  const auto files = static_cast<int64_t>(facts.number("limit_open_files"));
  const int64_t needed = kFilesPerPeer * peers.size() + kOtherFiles;
  if (files >= 0 && files < needed) {
    result.warn(host, str(host, ": ", files, " open files are allowed, and ", peers.size(), " ranks may need ", needed,
                          "; raise ulimit -n"));
  }
  if (gpus && peers.ranks_of(host).size() > 1 && facts.has("shared_memory_bytes") && shared < kSharedMemoryForNccl) {
    result.warn(host, str(host, ": /dev/shm has ", human_bytes(shared),
                          ", through which NCCL's ranks of a host may talk; start the container with --shm-size=1g"));
  }
  if (gpus && peers.size() > static_cast<int>(peers.ranks_of(host).size()) &&
      facts.number("limit_memlock_bytes") >= 0) {
    result.warn(host, str(host, ": only ", human_bytes(facts.number("limit_memlock_bytes")),
                          " may be locked in memory, which InfiniBand needs; ulimit -l unlimited"));
  }
}

}  // namespace

CheckResult check_memory(World& world, const RankHosts& peers, Backend& backend, Comm* data,
                         const std::optional<RunConfig>& config) {
  const Device& device = *backend.device;
  CheckResult result{.name = "memory", .kind = Kind::kDevice};
  if (!measure(result, world.comm(), peers, [&](Facts& facts) { measure_memory(facts, device); })) return result;
  if (config && data != nullptr) {
    result.value = compare_plan(result, world, peers, backend, *data, *config);
    // A single rank cannot blame its host for a config that is too large.
    if (result.value.empty() && peers.size() == 1) result.notes.back().host.clear();
  }
  if (result.value.empty()) {
    result.value = str(human_bytes(result.ranks.front().number("device_available_bytes")), " of ",
                       human_bytes(result.ranks.front().number("device_total_bytes")), " available");
  }
  std::vector<double> totals;
  for (const int rank : peers.first_ranks()) totals.push_back(result.ranks[rank].number("host_total_bytes"));
  for (const int rank : peers.first_ranks()) judge_host(result, peers, rank, median_of(totals));
  return result;
}

}  // namespace tokamak::doctor

#include "doctor/memory.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>

#include "base/process.h"
#include "comm/lane.h"
#include "comm/mesh.h"
#include "train/auto_choice.h"
#include "train/memory_check.h"
#include "train/run_plan.h"

namespace tokamak::doctor {

namespace {

constexpr double kLessThanOthers = 0.9;  // of the median host
// Sockets where ranks meet over TCP (comm/README.md), beside files, libraries and the data set.
constexpr int64_t kFilesPerPeer = kLanes + 1, kOtherFiles = 128;
// What NCCL's user guide asks of containers (docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html,
// "Shared Memory": --shm-size=1g --ulimit memlock=-1).
constexpr int64_t kSharedMemoryForNccl = int64_t{1} << 30;

int64_t limit_of(__rlimit_resource resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return -1;
  return static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, INT64_MAX));
}

std::string bytes_text(double bytes) { return human_bytes(bytes); }

// Adds the plan of every rank and its share of the memory, and says whether they go together.
void compare_plan(CheckResult& result, World& world, const RankHosts& peers, const MemoryCheck& check) {
  const RunConfig& stated = *check.config;
  // Whatever a start chooses fits if the least does.
  const RunConfig config = leaves_choice(stated) ? with_choice(stated, least_choice(stated)) : stated;
  const Device& device = *check.backend->device;
  const auto measured = [&](const std::function<Facts()>& measure) {
    const std::vector<Facts> ranks = gather_facts(world.comm(), measure);
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      for (const auto& [name, value] : ranks[rank].all()) result.ranks[rank].set(name, value);
    }
    if (!report_errors(result, peers)) return true;
    if (peers.size() == 1) result.notes.back().host.clear();  // a config that is too large is not its host's fault
    return false;
  };
  int replicas = 1;
  const auto find_replicas = [&] {
    replicas = replicas_of(config.parallelism, world.size());
    return Facts();
  };
  if (!measured(find_replicas)) return;
  // The groups that a run makes: each takes memory, and reserves some.
  const MeshGroups groups(*check.data, replicas);
  const MemoryShare share = memory_share(device, world, groups.mesh(), config.runtime);
  const auto plan = [&] {
    const GlobalBatch batch = make_global_batch(config.training, config.data, world.size());
    const PlannedRun run =
        plan_run(config, batch, groups.mesh(), *check.backend, PlanFor::kTraining, share.total, share.available);
    Facts facts;
    facts.set("planned_bytes", planned_bytes(run.engine->plan(), device));
    facts.set("share_bytes", share.available);
    facts.set("reserve_bytes", share.reserve);
    try {
      expect_fit(run.engine->plan(), device, share, config, run.shape.micro_batch);
    } catch (const Error& error) {  // without the plan, which has a page of its own
      fail(error.kind(), error.what(), error.hint().substr(0, error.hint().find("\nplan:")));
    }
    return facts;
  };
  if (!measured(plan)) return;
  result.value = str(bytes_text(result.ranks.front().number("planned_bytes")), " planned of ",
                     bytes_text(result.ranks.front().number("share_bytes")), " available to each rank");
}

}  // namespace

Facts memory_facts(const Device& device) {
  Facts facts;
  const int64_t physical = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE);
  const int64_t usable = total_memory_bytes();
  facts.set("host_total_bytes", physical);
  facts.set("host_available_bytes", available_memory_bytes());
  if (usable < physical / 100 * 99) facts.set("control_group_limit_bytes", usable);
  facts.set("device_total_bytes", device.total_bytes());
  facts.set("device_available_bytes", device.available_bytes());
  facts.set("device_is_host", int64_t{device.uses_host_memory()});
  facts.set("limit_memlock_bytes", limit_of(RLIMIT_MEMLOCK));  // -1: none
  facts.set("limit_open_files", limit_of(RLIMIT_NOFILE));
  struct statvfs shm {};
  if (statvfs("/dev/shm", &shm) == 0) {
    const auto block = static_cast<int64_t>(shm.f_frsize);
    facts.set("shared_memory_bytes", static_cast<int64_t>(shm.f_blocks) * block);
    facts.set("shared_memory_free_bytes", static_cast<int64_t>(shm.f_bavail) * block);
  }
  return facts;
}

void judge_memory(CheckResult& result, const RankHosts& peers) {
  std::vector<double> totals;
  for (const int rank : peers.first_ranks()) {
    totals.push_back(result.ranks[static_cast<size_t>(rank)].number("host_total_bytes"));
  }
  const double common = median(totals);
  for (const int rank : peers.first_ranks()) {
    const Facts& facts = result.ranks[static_cast<size_t>(rank)];
    const std::string& host = peers.host(rank);
    const int64_t ranks_here = static_cast<int64_t>(peers.ranks_of(host).size());
    const bool gpus = facts.number("device_is_host") == 0;
    if (facts.number("host_total_bytes") < kLessThanOthers * common) {
      result.warn(host, str(host, " has ", bytes_text(facts.number("host_total_bytes")), " of memory, the median host ",
                            bytes_text(common), ": a module may be missing"));
    }
    const auto files = static_cast<int64_t>(facts.number("limit_open_files"));
    const int64_t needed = kFilesPerPeer * peers.size() + kOtherFiles;
    if (files >= 0 && files < needed) {
      result.warn(host, str(host, ": ", files, " open files are allowed, and ", peers.size(), " ranks may need ",
                            needed, "; raise ulimit -n"));
    }
    if (gpus && ranks_here > 1 && facts.has("shared_memory_bytes") &&
        facts.number("shared_memory_bytes") < static_cast<double>(kSharedMemoryForNccl)) {
      result.warn(host, str(host, ": /dev/shm has ", bytes_text(facts.number("shared_memory_bytes")),
                            ", through which NCCL's ranks of a host may talk; start the container with --shm-size=1g"));
    }
    if (gpus && peers.hosts().size() > 1 && facts.number("limit_memlock_bytes") >= 0) {
      result.warn(host, str(host, ": only ", bytes_text(facts.number("limit_memlock_bytes")),
                            " may be locked in memory, which InfiniBand needs; ulimit -l unlimited"));
    }
  }
  const Facts& first = result.ranks.front();
  if (result.value.empty()) {
    result.value = str(bytes_text(first.number("device_available_bytes")), " of ",
                       bytes_text(first.number("device_total_bytes")), " available");
  }
}

CheckResult check_memory(World& world, const RankHosts& peers, const MemoryCheck& check) {
  const Device& device = *check.backend->device;
  CheckResult result{.name = "memory", .kind = Kind::kDevice};
  result.ranks = gather_facts(world.comm(), [&] { return memory_facts(device); });
  if (report_errors(result, peers)) return result;
  if (check.config != nullptr && check.data != nullptr) compare_plan(result, world, peers, check);
  judge_memory(result, peers);
  return result;
}

}  // namespace tokamak::doctor

#include "train/memory_check.h"

#include <algorithm>

#include "base/error.h"
#include "base/process.h"

namespace tokamak {

namespace {

constexpr const char* kNoSnapshot = "checkpoint.async: false, without a snapshot, where training waits for the disk";
constexpr const char* kMoreNodes = "more ranks on more nodes, each holding a smaller part of the state";

std::string to_read_ahead(const char* how, int64_t bytes) {
  return bytes == 0 ? "" : str(", ", how, " ", human_bytes(bytes), " to read data ahead");
}

void expect_host_fit(const MemoryPlan& plan, const Device& device, const MemoryShare& memory, int64_t read_ahead) {
  const int64_t pinned = pinned_bytes(plan, device);
  if (pinned + read_ahead <= memory.host_available) return;
  const int64_t ranks = memory.host_ranks;
  const std::string limit = tightest_memory_limit();
  fail(Kind::kDevice,
       str("the run pins ", human_bytes(pinned), " of host memory on each rank", to_read_ahead("besides", read_ahead),
           ranks > 1 ? str(", ", human_bytes(ranks * pinned), " on a node of ", ranks, " ranks") : "", ", but ",
           human_bytes(ranks * memory.host_available), " are available", limit.empty() ? "" : "; " + limit),
       str("what would help: ", snapshot_hint(device), "\nplan:\n", plan.report()));
}

}  // namespace

MemoryShare memory_share(const Device& device, World& world, const Mesh& mesh, const RuntimeOptions& options) {
  const int64_t on_device = device.uses_host_memory() ? INT64_MAX : options.ranks_per_gpu;
  const auto ranks_sharing = static_cast<int>(std::min<int64_t>(world.local_size(), on_device));
  const int64_t reserve = device.reserve_bytes() + mesh.reserve_bytes();
  const auto smallest = [&](int64_t bytes, int64_t kept) {
    return -world.comm().max(-std::max<int64_t>(bytes / ranks_sharing - kept, 0));
  };
  const int64_t total = smallest(device.total_bytes(), device.startup_bytes() + reserve);
  const int64_t most = smallest(device.total_bytes(), reserve);
  // The groups have connected, so what is available is what they left.
  const int64_t left = smallest(device.available_bytes(), device.reserve_bytes() + mesh.pending_bytes());
  MemoryShare share{total, std::min(most, left), reserve, ranks_sharing};
  if (!device.uses_host_memory()) {
    share.host_ranks = world.local_size();
    share.host_available = -world.comm().max(-available_memory_bytes() / share.host_ranks);
  }
  return share;
}

int64_t planned_bytes(const MemoryPlan& plan, const Device& device) {
  return plan.total_bytes() - pinned_bytes(plan, device);
}

int64_t pinned_bytes(const MemoryPlan& plan, const Device& device) {
  return device.uses_host_memory() ? 0 : plan.total_bytes(MemoryKind::kPinned);
}

std::string snapshot_hint(const Device& device) {
  if (device.uses_host_memory()) {
    return str(kNoSnapshot, "; ", kMoreNodes);
  }
  return str("more host memory, also in the limit of a batch job or container; fewer ranks on a node; ", kMoreNodes,
             ". checkpoint.async: false would not: a GPU's state is always saved from a snapshot");
}

int64_t fillable_bytes(int64_t bytes, bool uses_host_memory) { return uses_host_memory ? bytes - bytes / 8 : bytes; }

void expect_fit(const MemoryPlan& plan, const Device& device, const MemoryShare& memory, const RunConfig& config,
                int64_t micro_batch, int64_t read_ahead) {
  const bool on_host = device.uses_host_memory();
  if (!on_host) expect_host_fit(plan, device, memory, read_ahead);
  const int64_t needed = planned_bytes(plan, device) + (on_host ? read_ahead : 0);
  if (needed <= memory.available) return;
  std::vector<std::string> help;
  if (micro_batch > 1) help.push_back(str("lower training.micro_batch_size (now ", micro_batch, ")"));
  const ActivationCheckpointOptions& recompute = config.activation_checkpoint;
  if (recompute.mode == RecomputeMode::kNone) help.push_back("activation_checkpoint.mode: selective, or full");
  if (recompute.mode == RecomputeMode::kSelective && recompute.kept_bytes.value > 0) {
    help.push_back(str("lower activation_checkpoint.kept_bytes (now ", human_bytes(recompute.kept_bytes.value), ")"));
  }
  if (config.parallelism.zero_stage < 3)
    help.push_back(str("parallelism.zero_stage: ", config.parallelism.zero_stage + 1));
  const bool gathers = std::any_of(plan.entries().begin(), plan.entries().end(), [](const MemoryPlan::Entry& entry) {
    return starts_with(entry.name, "gathered weights/");
  });
  if (gathers && config.parallelism.zero_stage == 3 && config.parallelism.unit == UnitSize::kLayer) {
    help.push_back("parallelism.unit: projection");
  }
  if (config.parallelism.reduce == ReduceWhen::kLastMicrobatch && config.parallelism.zero_stage > 1) {
    help.push_back("parallelism.reduce: every_microbatch");
  }
  if (const AutoLimit kept = config.parallelism.keep_gathered; kept.value > 0) {
    help.push_back(str("lower parallelism.keep_gathered (now ", kept.value, ")"));
  }
  if (const int64_t replicas = config.parallelism.data_parallel_replicate_degree; replicas > 1) {
    help.push_back(str("lower parallelism.data_parallel_replicate_degree (now ", replicas, ")"));
  }
  if (const SampleOptions& samples = config.training.samples; !samples.prompts.empty()) {
    help.push_back(str("fewer or shorter training.samples (now ", samples.prompts.size(), " prompts)"));
  }
  const std::string limit = device.uses_host_memory() ? tightest_memory_limit() : "";
  if (device.uses_host_memory() && config.checkpoint.async) help.push_back(kNoSnapshot);
  help.push_back(kMoreNodes);
  fail(
      Kind::kDevice,
      str("the run needs ", human_bytes(needed), " on each rank", on_host ? to_read_ahead("including", read_ahead) : "",
          ", but ", human_bytes(memory.available), " are available",
          memory.ranks_sharing > 1 ? str(" to each of ", memory.ranks_sharing, " ranks of this node") : "",
          memory.reserve > 0 ? str(", beside ", human_bytes(memory.reserve), " reserved for ", kReserveIsFor) : "",
          limit.empty() ? "" : "; " + limit),
      str("what would help: ", join(help, "; "), "\nplan:\n", plan.report()));
}

}  // namespace tokamak

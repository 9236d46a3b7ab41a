// Whether a plan fits this machine, and what to change if it does not.
#pragma once

#include <cstdint>
#include <string>

#include "backend/backend.h"
#include "comm/mesh.h"
#include "comm/world.h"
#include "tensor/arena.h"
#include "train/run_config.h"

namespace tokamak {

// Bytes that each rank may plan with, of what the devices could give in all (`total`) or can still give: the smallest
// share of any rank, so that all ranks plan alike. Collective, after the group `data` is made, which takes some.
struct MemoryShare {
  int64_t total = 0;      // the same from start to start: what automatic choices go by
  int64_t available = 0;  // now: what a plan must fit into
  int64_t reserve = 0;    // of each rank, kept back from both: for code that is loaded late, graphs and NCCL
  int ranks_sharing = 1;  // ranks of this node that share the memory

  // The host's memory, of a device that has its own: what the node can still give to each of its ranks, the least of any
  // node. Pinned buffers must fit into it.
  int64_t host_available = INT64_MAX;
  int host_ranks = 1;  // ranks of this node
};
inline constexpr const char* kReserveIsFor = "code loaded at its first use, graphs and NCCL";
MemoryShare memory_share(const Device& device, World& world, const Mesh& data, const RuntimeOptions& options);

// What a plan takes of the device's memory; pinned buffers are the host's, which is the device's own on a CPU.
int64_t planned_bytes(const MemoryPlan& plan, const Device& device);

// What a plan pins of the host's memory, beside that of a device with its own; 0 on a CPU.
int64_t pinned_bytes(const MemoryPlan& plan, const Device& device);

// What would help where a node has too little memory for the snapshot that saves are written from.
std::string snapshot_hint(const Device& device);

// What choices of the program may fill. The memory of a CPU also holds what no plan has: libraries' scratch, batches to
// come. So an eighth of it stays free.
int64_t fillable_bytes(int64_t bytes, bool uses_host_memory);

// Error(kDevice) naming the numbers and the keys that would help, where the plan does not fit into the device's memory, or
// its pinned buffers not into the host's.
void expect_fit(const MemoryPlan& plan, const Device& device, const MemoryShare& memory, const RunConfig& config,
                int64_t micro_batch);

}  // namespace tokamak

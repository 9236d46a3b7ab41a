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

// Bytes that each rank may plan with: of all that its device has (`total`), and of what is left (`available`). Each is
// the smallest of all ranks, so that all make the same plan. Collective, after the groups are made: they take memory.
struct MemoryShare {
  int64_t total = 0;      // the same from start to start: decides automatic choices
  int64_t available = 0;  // now: what a plan must fit into
  int64_t reserve = 0;    // of each rank, kept back from both: for code that is loaded late, graphs and NCCL
  int ranks_sharing = 1;  // ranks of this node that share the memory

  // Host memory, for a device with memory of its own: what a node can still give to each of its ranks, the least of all
  // nodes. Pinned buffers must fit into it.
  int64_t host_available = INT64_MAX;
  int host_ranks = 1;  // ranks of this node
};
inline constexpr const char* kReserveIsFor = "code loaded at its first use, graphs and NCCL";
MemoryShare memory_share(const Device& device, World& world, const Mesh& mesh, const RuntimeOptions& options);

// Bytes of a plan in the device's memory. This includes pinned buffers only on a CPU, whose memory is the host's.
int64_t planned_bytes(const MemoryPlan& plan, const Device& device);

// Bytes of host memory that a plan pins; 0 on a CPU.
int64_t pinned_bytes(const MemoryPlan& plan, const Device& device);

// Advice for a node with too little memory for the snapshot that saves are written from.
std::string snapshot_hint(const Device& device);

// Bytes that automatic choices may fill. A CPU's memory also holds scratch of libraries, which no plan includes. So an
// eighth of it stays free.
int64_t fillable_bytes(int64_t bytes, bool uses_host_memory);

// Error(kDevice) if the plan does not fit into the device's memory, or its pinned buffers into the host's, next to
// `read_ahead` bytes of training data (read_ahead_bytes). It names the numbers and the keys that would help.
void expect_fit(const MemoryPlan& plan, const Device& device, const MemoryShare& memory, const RunConfig& config,
                int64_t micro_batch, int64_t read_ahead = 0);

}  // namespace tokamak

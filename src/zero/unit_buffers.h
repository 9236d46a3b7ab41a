// Persistent buffers for whole units: one for the norms and one for each unit of the first layers; two that the other
// layers share. Where layers share, so do the embedding and the head, which are never in use at the same time: one buffer
// of their own or, where a layer is several units, the layers' two. Else they have a buffer each. Tracks which unit each
// buffer holds and whether it is in use; misuse is a bug and throws.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/device.h"
#include "tensor/arena.h"
#include "tensor/param_table.h"

namespace tokamak {

class UnitBuffers {
 public:
  static constexpr int64_t kNone = -1;

  // Plans the buffers as "group/name". `elements`: of each unit, padded. The units of the first `own` layers have a
  // buffer each.
  UnitBuffers(const std::string& group, const ParamTable& table, const std::vector<int64_t>& elements, int64_t own,
              DType dtype, MemoryPlan& plan);
  void commit(const Arena& arena, Device& device);

  struct Buffer {
    MemoryPlan::Slot slot;
    Tensor tensor;                   // (padded elements)
    int64_t holds = kNone;           // unit whose contents are (being made) valid
    int users = 0;                   // acquired and not yet released
    int64_t last_use = 0;            // by the count of uses: which of several buffers is given away first
    std::unique_ptr<Event> filled;   // the contents of `holds` have arrived
    std::unique_ptr<Event> drained;  // the last user has finished
  };

  Buffer* find(int64_t unit);  // that holds the unit, or null
  Buffer& of(int64_t unit);    // the same, which there must be
  // The buffer that take(unit, keep) would assign; null if others of the unit's buffers are in use or hold `keep`.
  Buffer* available(int64_t unit, int64_t keep = kNone);
  bool has_empty(int64_t unit);  // whether a buffer for it holds nothing
  // Assigns a buffer to the unit: the one that holds it, else an empty one, else that of the longest unused unit.
  Buffer& take(int64_t unit, int64_t keep = kNone);
  void used(Buffer& buffer) { buffer.last_use = ++uses_; }
  void forget_contents();  // invalidates all contents; no buffer may be in use

 private:
  // Consecutive buffers, each of which may hold any of some units.
  struct Group {
    size_t first = 0, count = 0;
  };
  std::span<Buffer> buffers_for(int64_t unit);

  std::vector<Buffer> buffers_;
  std::vector<Group> group_of_;  // per unit
  int64_t uses_ = 0;
};

}  // namespace tokamak

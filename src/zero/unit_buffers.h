// Persistent buffers for whole units: one for the norms, one for each unit of the first layers, two for other layers.
// If layers share buffers, so do embedding and head, which are never in use at the same time. These two share a buffer
// of their own or, if a layer is several units, the layers' two. The class tracks which unit each buffer holds and
// whether it is in use. Misuse is a bug and throws.
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
    Tensor tensor;                   // (padded elements); without data before commit()
    int64_t holds = kNone;           // the unit whose contents are valid, or will be at `filled`
    int users = 0;                   // how often it was acquired and not yet released
    int64_t last_use = 0;            // number of that use; take() gives away the least
    std::unique_ptr<Event> filled;   // the contents of `holds` have arrived
    std::unique_ptr<Event> drained;  // the last user has finished
  };

  Buffer* find(int64_t unit);  // the buffer that holds the unit, or null
  Buffer& of(int64_t unit);    // find(), but the buffer must exist
  // The buffer that take(unit, keep) would assign; null if all of the unit's buffers are in use or hold `keep`.
  Buffer* available(int64_t unit, int64_t keep = kNone);
  bool has_empty(int64_t unit);  // whether a buffer for it holds nothing
  // Assigns a buffer to the unit: the one that holds it, else an empty one, else the least recently used.
  Buffer& take(int64_t unit, int64_t keep = kNone);
  void used(Buffer& buffer) { buffer.last_use = ++uses_; }
  std::vector<Tensor> tensors() const;  // of all buffers; without data before commit()
  void forget_contents();               // invalidates all contents; no buffer may be in use

 private:
  // Consecutive buffers for a set of units: each buffer may hold any of them.
  struct Group {
    size_t first = 0, count = 0;
  };
  std::span<Buffer> buffers_for(int64_t unit);

  std::vector<Buffer> buffers_;
  std::vector<Group> group_of_;  // per unit
  int64_t uses_ = 0;
};

}  // namespace tokamak

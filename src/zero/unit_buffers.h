// Persistent buffers for whole units: one for the norms and one for each of the first layers; two, sized to a layer,
// that the other layers share. Where layers share, so do the embedding and the head, which are never in use at the same
// time; else they have a buffer each. Tracks which unit each buffer holds and whether it is in use; misuse is a bug and
// throws.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/device.h"
#include "tensor/arena.h"
#include "tensor/param_table.h"

namespace tokamak {

class UnitBuffers {
 public:
  // Plans the buffers as "group/name". `elements`: of each unit, padded. The first `own` layers have a buffer each.
  UnitBuffers(const std::string& group, const ParamTable& table, const std::vector<int64_t>& elements, int64_t own,
              DType dtype, MemoryPlan& plan);
  void commit(const Arena& arena, Device& device);

  struct Buffer {
    MemoryPlan::Slot slot;
    Tensor tensor;                   // (padded elements)
    int64_t holds = -1;              // unit whose contents are (being made) valid; -1: none
    int users = 0;                   // acquired and not yet released
    std::unique_ptr<Event> filled;   // the contents of `holds` have arrived
    std::unique_ptr<Event> drained;  // the last user has finished
  };

  Buffer& of(int64_t unit);  // the buffer that serves this unit
  bool holds(int64_t unit) { return of(unit).holds == unit; }
  Buffer& take(int64_t unit);  // assigns the buffer to this unit; no other unit may be in use in it
  void forget_contents();      // invalidates all contents; no buffer may be in use

 private:
  std::vector<Buffer> buffers_;
  std::vector<size_t> buffer_of_;  // per unit
};

}  // namespace tokamak

// A part of a run's state besides weights and gradients, in this rank's slices: moments, averages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace tokamak {

// A unit's part of a StateTensor: this rank's slice of the unit, whole if one of its weights has the state.
struct StateUnit {
  static constexpr int64_t kNone = -1;
  int64_t begin = kNone;      // first element in the tensor; kNone: no weight of the unit has the state
  std::vector<bool> weights;  // those that have it, in the order of flat_params; the others' elements stay zero

  bool is_held() const { return begin != kNone; }
};

// A named part of a run's state on this rank. Checkpoints store it under this name.
struct StateTensor {
  std::string name;
  Tensor tensor;                 // (elements of its units) f32 or bf16; without data before commit()
  std::vector<StateUnit> units;  // of every unit of the table, in order
  bool in_host_memory = false;   // pinned: the host reads and writes it, too
};

}  // namespace tokamak

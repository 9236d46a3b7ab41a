// The offset of each weight in its unit's flat buffer. Offsets do not depend on the number of ranks; only the padding
// at the end does. So checkpoints of different world sizes are matched by element index.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/param_table.h"

namespace tokamak {

struct UnitLayout {
  // Every matrix begins at a multiple of this many elements, which aligns it in bf16 and in f32.
  static constexpr int64_t kAlignment = 64;

  std::vector<int64_t> offsets;  // of each matrix, in elements
  int64_t count = 0;             // end of the last matrix

  explicit UnitLayout(const Unit& unit);
  // Elements of one rank's slice, padded so that each of `parts` equal parts of it is aligned, too.
  int64_t slice(int ranks, int parts = 1) const;
};

// A weight (or a row range of a fused matrix) as an element range of its unit's flat buffer.
struct FlatParam {
  const Param* param = nullptr;
  int64_t begin = 0;  // first element
  int64_t end = 0;    // one past the last
};

std::vector<FlatParam> flat_params(const Unit& unit);  // in order; views into `unit`

}  // namespace tokamak

// The second half of a sum over rows: its parts, one of each block, added up in one fixed order.
#pragma once

#include <cstdint>

#include "cuda/check.h"

namespace tokamak {

// sums[c] += parts[0][c] + parts[1][c] + ...                                                      parts (count, width)
void add_parts(cudaStream_t stream, const float* parts, int64_t count, int64_t width, float* sums);

}  // namespace tokamak

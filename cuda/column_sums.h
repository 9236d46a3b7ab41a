// The second phase of a sum over rows: adds the parts, one per block, in a fixed order.
#pragma once

#include <cstdint>

#include "cuda/check.h"

namespace tokamak {

// sums[c] += parts[0][c] + parts[1][c] + ...                                                      parts (count, width)
void add_parts(cudaStream_t stream, const float* parts, int64_t count, int64_t width, float* sums);

}  // namespace tokamak

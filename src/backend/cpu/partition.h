// Partitions element-wise work among threads. The partition depends on the sizes alone, so any number of threads
// computes an element by the same instructions (vector body or scalar remainder). So the results have the same bits.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/parallel_for.h"
#include "tensor/dtype.h"

namespace tokamak {

inline constexpr int64_t kBlockElements = 16384;  // elements of a block: enough to amortise a thread's start

// Minimum rows per thread, for rows of `width` elements.
inline int64_t row_grain(int64_t width) { return std::max<int64_t>(1, kBlockElements / std::max<int64_t>(width, 1)); }

// Calls body(begin, end) for each block of kBlockElements of [0, count), in parallel.
template <class Body>
void parallel_blocks(int64_t count, const Body& body) {
  const int64_t blocks = (count + kBlockElements - 1) / kBlockElements;
  parallel_for(blocks, 1, [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) {
      body(b * kBlockElements, std::min(count, (b + 1) * kBlockElements));
    }
  });
}

// sums[c] += x[0][c] + x[1][c] + ... in f32, in an order that depends on the number of rows alone.   x (rows, width)
template <class T>
void add_columns(const T* x, int64_t rows, int64_t width, float* sums);  // column_sums.cc

}  // namespace tokamak

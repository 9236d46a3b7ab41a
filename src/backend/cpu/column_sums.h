// Sums over the rows of a matrix, of gradients or of their partial sums.
#pragma once

#include <cstdint>

namespace tokamak {

// sums[c] += x[0][c] + x[1][c] + ... in f32, in an order that depends on the number of rows alone.   x (rows, width)
template <class T>
void add_columns(const T* x, int64_t rows, int64_t width, float* sums);

}  // namespace tokamak

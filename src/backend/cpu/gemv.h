// GEMMs of few rows with a column-major matrix, as in decoding, where a layer's weights multiply one token per
// sequence. They are bound by reading the matrix, which is read once, sequentially. A row's bits depend neither on the
// other rows nor on the number of threads, so a sequence has the same result in any batch of up to kFewRows.
#pragma once

#include <vector>

#include "backend/cpu/gemm.h"

namespace tokamak {

inline constexpr int64_t kFewRows = 8;  // above this, the GEMM is compute-bound

// Whether `call` is such a GEMM: a row-major, b column-major, at most kFewRows rows.
bool is_few_rows(const GemmEngine::Call& call);

// `scratch` grows to the size that a's rows need.
void multiply_few_rows(const GemmEngine::Call& call, std::vector<std::byte>& scratch);

}  // namespace tokamak

// Products of few rows with a matrix that lies by columns, as a layer's weights do when tokens are generated one by
// one: bound by reading the matrix, which is read once, in order. A row's bits depend neither on the other rows nor on
// the number of threads, so that a sequence is continued alike in any batch of up to kFewRows.
#pragma once

#include <vector>

#include "backend/cpu/gemm.h"

namespace tokamak {

inline constexpr int64_t kFewRows = 8;  // beyond, arithmetic bounds the product

// Whether `call` is such a product: a by rows, b by columns, kFewRows rows at most.
bool is_few_rows(const GemmEngine::Call& call);

// `scratch` grows to what a's rows need.
void multiply_few_rows(const GemmEngine::Call& call, std::vector<std::byte>& scratch);

}  // namespace tokamak

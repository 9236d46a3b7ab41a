// What MFU is measured against. On a GPU a table of published dense peaks would stand here; a CPU's peak depends on
// clock and neighbours, so there it is the rate of a large GEMM, measured through the backend when the run starts.
#pragma once

#include "backend/backend.h"

namespace tokamak {

// FLOP/s of C = A B^T at 1024 x 1024 x 1024 in this dtype, best of a few repetitions (about 0.2 s).
double measure_gemm_rate(Backend& backend, DType compute);

}  // namespace tokamak

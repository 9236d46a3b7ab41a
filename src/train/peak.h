// What MFU is measured against: on a GPU the dense peak that its maker states; a CPU's peak depends on clock and
// other processes, so there it is the rate of a large GEMM, measured through the backend when the run starts.
#pragma once

#include <string>

#include "backend/backend.h"

namespace tokamak {

struct Peak {
  double flops = 0;    // per second, of one rank
  std::string source;  // "the maker's dense peak", "a 1024^3 GEMM, measured now"
};

// Where it measures: C = A B^T in this dtype, best of a few repetitions (about 0.2 s on two cores).
Peak peak_of(Backend& backend, DType compute);

// Of the device's memory, while it measures; 0 where it does not.
int64_t peak_measurement_bytes(const Device& device, DType compute);

}  // namespace tokamak

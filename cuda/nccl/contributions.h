// The local computation of a bf16 reduction: rounds the contributions to send, and sums the received ones in f32, in
// rank order.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "base/bf16.h"

namespace tokamak {

// Elements [begin, begin + piece) of every rank's slice.
struct ContributionPiece {
  int ranks = 1;
  int64_t slice = 0;  // elements of one rank; all three are multiples of 8
  int64_t begin = 0;
  int64_t piece = 0;
};

// full (ranks, slice) -> send (ranks, piece). Moves 6 bytes per element sent.
void round_contributions(cudaStream_t stream, const float* full, bf16* send, const ContributionPiece& at);
// received (ranks, piece) -> slice[begin, begin + piece). Moves 2 ranks + 4 bytes per element of the piece.
void sum_contributions(cudaStream_t stream, const bf16* received, float* slice, const ContributionPiece& at);

}  // namespace tokamak

// Memory-bound: 16-byte accesses throughout, as slices and pieces are multiples of kSliceAlignment.
#include "cuda/nccl/contributions.h"

#include "base/error.h"
#include "cuda/launch.h"
#include "cuda/vec.h"

namespace tokamak {
namespace {

constexpr int kThreads = 256;
constexpr int kWidth = kVecWidth<bf16>;

// One thread per kWidth elements of a rank's piece; blockIdx.y is the rank.
__global__ void round_piece(const float* full, bf16* send, ContributionPiece at) {
  const int64_t i = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kWidth;
  if (i >= at.piece) return;
  const int64_t rank = blockIdx.y;
  store(send + rank * at.piece + i, load<kWidth>(full + rank * at.slice + at.begin + i));
}

// One thread per kWidth elements of the piece.
__global__ void sum_piece(const bf16* received, float* slice, ContributionPiece at) {
  const int64_t i = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kWidth;
  if (i >= at.piece) return;
  Vec<kWidth> total = {};
  for (int rank = 0; rank < at.ranks; ++rank) total = total + load<kWidth>(received + rank * at.piece + i);
  store(slice + at.begin + i, total);
}

void check(const ContributionPiece& at) {
  TOKAMAK_CHECK(at.slice % kWidth == 0 && at.begin % kWidth == 0 && at.piece % kWidth == 0, at.slice, ", ", at.begin,
                ", ", at.piece);
}

}  // namespace

void round_contributions(cudaStream_t stream, const float* full, bf16* send, const ContributionPiece& at) {
  check(at);
  const dim3 grid(blocks_for(at.piece, kThreads * kWidth), static_cast<unsigned>(at.ranks));
  launch({"round_contributions", grid, kThreads}, stream, round_piece, full, send, at);
}

void sum_contributions(cudaStream_t stream, const bf16* received, float* slice, const ContributionPiece& at) {
  check(at);
  launch({"sum_contributions", {blocks_for(at.piece, kThreads * kWidth)}, kThreads}, stream, sum_piece, received, slice,
         at);
}

}  // namespace tokamak

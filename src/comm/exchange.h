// A reduction in which ranks exchange contributions and each sums its own slice. It runs in rounds of bounded size, so
// that its scratch stays small.
#pragma once

#include <algorithm>
#include <cstdint>

#include "comm/comm.h"

namespace tokamak {

struct ExchangeRounds {
  // Elements of one round over all ranks: 32 MiB of bf16. On 64 ranks that is half a MiB per message, at which links
  // between nodes still reach about their full rate.
  static constexpr int64_t kElements = int64_t{16} << 20;
  static constexpr int64_t kHostElements = int64_t{4} << 20;    // between CPUs: 16 MiB of f32
  static constexpr int64_t kGrain = Comm::kSliceAlignment / 2;  // elements of bf16, the narrowest

  int ranks = 1;
  int64_t slice = 0;  // elements of one rank
  int64_t most = kElements;

  int64_t longest_piece() const {  // elements of a slice in one round
    return std::min(slice, std::max(most / ranks / kGrain, int64_t{1}) * kGrain);
  }
  int64_t scratch_elements() const { return 2 * ranks * longest_piece(); }  // of one round, to send and to receive
  // A GPU has two rounds in flight: one exchanges while the other sums, so each has its own scratch.
  int in_flight() const { return longest_piece() < slice ? 2 : 1; }
};

// Comm::scratch_elements of groups over host memory, and of groups over NCCL.
inline int64_t host_scratch_elements(int ranks, int64_t slice) {
  return ExchangeRounds{ranks, slice, ExchangeRounds::kHostElements}.scratch_elements();
}
inline int64_t nccl_scratch_elements(int ranks, int64_t slice, DType dtype) {
  const ExchangeRounds rounds{ranks, slice};
  return by_act_type(dtype, int64_t{0}, rounds.in_flight() * rounds.scratch_elements());
}

}  // namespace tokamak

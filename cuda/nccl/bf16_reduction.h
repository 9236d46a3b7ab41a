// reduce_scatter of bf16 contributions. NCCL would sum them in bf16, so the ranks of a node exchange them and each sums
// in f32. Between nodes, NCCL reduces the f32 sums of each node: with G ranks per node, sending contributions would
// cost G / 2 times the bytes. If nodes differ in size, or have one rank, all ranks exchange as if they were one node.
//
// Two rounds are in flight: the exchange of round k + 1, on its own stream, overlaps the sums of round k. The sums have
// the same bits as those of one round after another. Between nodes, NCCL's reduction of round k still waits for that
// exchange, because their communicators share resources (communicator.h).
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "comm/comm.h"
#include "comm/exchange.h"
#include "cuda/device.h"
#include "cuda/nccl/communicator.h"

namespace tokamak {

class NcclBf16Reduction {
 public:
  // `all` has all ranks of `control`; it is used if there is one level. Collective.
  NcclBf16Reduction(Comm& control, const NcclCommunicator& all, NcclShared& shared);

  void run(cudaStream_t stream, const Comm::ReduceScatter& args) const;
  std::vector<const NcclCommunicator*> own() const;  // those that it made, without `all`
  std::string name() const;                          // of the communicators that it uses, for messages

 private:
  // A set of scratch: (ranks, piece) to send, then (ranks, piece) that have come.
  struct Set {
    CudaEvent rounded;    // sent data is written
    CudaEvent exchanged;  // received data is there; sent data may be overwritten
  };
  struct Round {
    bf16* send;
    const Set& set;
    int64_t begin, piece;
  };
  void send_contributions(cudaStream_t stream, const Comm::ReduceScatter& args, const Round& round) const;
  void exchange(const bf16* send, bf16* received, int64_t piece) const;
  void sum(cudaStream_t stream, const Comm::ReduceScatter& args, const Round& round) const;

  int ranks_;
  std::vector<std::vector<int>> nodes_;
  const NcclCommunicator& all_;
  std::optional<NcclCommunicator> inside_, across_;  // this rank's node; the ranks with its local rank in each node
  CudaStream exchanges_{StreamPriority::kHigh};
  std::array<Set, 2> sets_;
};

}  // namespace tokamak

#include "cuda/nccl/bf16_reduction.h"

#include <algorithm>

#include "base/error.h"
#include "cuda/nccl/check.h"
#include "cuda/nccl/contributions.h"
#include "cuda/nccl/nodes.h"

namespace tokamak {

NcclBf16Reduction::NcclBf16Reduction(Comm& control, const NcclCommunicator& all, NcclShared& shared)
    : ranks_(control.size()), nodes_(nodes_of(control.gather_all(shared.node))), all_(all) {
  if (nodes_.size() == 1) return;
  for (size_t n = 0; n < nodes_.size(); ++n) {
    const auto place = std::find(nodes_[n].begin(), nodes_[n].end(), control.rank());
    if (place == nodes_[n].end()) continue;
    inside_.emplace(all, static_cast<int>(n), *control.split(static_cast<int>(n)), str("node ", n));
    const auto local = static_cast<int>(place - nodes_[n].begin());
    across_.emplace(all, local, *control.split(local), "nodes");
  }
}

std::vector<const NcclCommunicator*> NcclBf16Reduction::own() const {
  if (!inside_) return {};
  return {&*inside_, &*across_};
}

std::string NcclBf16Reduction::name() const {
  return inside_ ? str(inside_->name(), " and ", across_->name()) : all_.name();
}

// Each rank of the node receives the contributions to the slices of all ranks with its local rank in their nodes:
void NcclBf16Reduction::exchange(cudaStream_t stream, const bf16* send, bf16* received, int64_t piece) const {
  const ncclComm_t comm = inside_ ? inside_->get() : all_.get();
  const auto count = static_cast<size_t>(piece);
  TOKAMAK_NCCL(ncclGroupStart());
  for (const std::vector<int>& node : nodes_) {
    for (size_t peer = 0; peer < node.size(); ++peer, received += piece) {
      TOKAMAK_NCCL(ncclSend(send + node[peer] * piece, count, ncclBfloat16, static_cast<int>(peer), comm, stream));
      TOKAMAK_NCCL(ncclRecv(received, count, ncclBfloat16, static_cast<int>(peer), comm, stream));
    }
  }
  TOKAMAK_NCCL(ncclGroupEnd());
}

void NcclBf16Reduction::run(cudaStream_t stream, const Comm::ReduceScatter& args) const {
  const int64_t length = args.slice.count();
  const int64_t longest = ExchangeRounds{ranks_, length}.longest_piece();
  const auto of_node = static_cast<int>(nodes_.front().size());
  for (int64_t begin = 0; begin < length; begin += longest) {
    const int64_t piece = std::min(longest, length - begin);
    bf16* const send = args.scratch.as<bf16>();
    const bf16* received = send + ranks_ * piece;
    round_contributions(stream, args.full.as<float>(), send, {ranks_, length, begin, piece});
    exchange(stream, send, send + ranks_ * piece, piece);
    if (!across_) {
      sum_contributions(stream, received, args.slice.as<float>(), {ranks_, length, begin, piece});
      continue;
    }
    // The send buffer is free now. The node's f32 sums (nodes, piece) fit into it, as a node has two ranks or
    // more.
    auto* const sums = static_cast<float*>(args.scratch.data());
    for (size_t n = 0; n < nodes_.size(); ++n, received += of_node * piece) {
      sum_contributions(stream, received, sums + static_cast<int64_t>(n) * piece, {of_node, piece, 0, piece});
    }
    TOKAMAK_NCCL(ncclReduceScatter(sums, args.slice.as<float>() + begin, static_cast<size_t>(piece), ncclFloat32,
                                   ncclSum, across_->get(), stream));
  }
}

}  // namespace tokamak

#include "cuda/nccl/bf16_reduction.h"

#include <algorithm>

#include "base/error.h"
#include "cuda/check.h"
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

// Each rank of the node receives the contributions to the slices of all ranks with its local rank in their nodes.
void NcclBf16Reduction::exchange(const bf16* send, bf16* received, int64_t piece) const {
  const cudaStream_t stream = exchanges_.handle();
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

void NcclBf16Reduction::send_contributions(cudaStream_t stream, const Comm::ReduceScatter& args,
                                           const Round& round) const {
  const ContributionPiece at{ranks_, args.slice.count(), round.begin, round.piece};
  round_contributions(stream, args.full.as<float>(), round.send, at);
  TOKAMAK_CUDA(cudaEventRecord(round.set.rounded.handle(), stream));
  TOKAMAK_CUDA(cudaStreamWaitEvent(exchanges_.handle(), round.set.rounded.handle(), 0));
  exchange(round.send, round.send + ranks_ * round.piece, round.piece);
  TOKAMAK_CUDA(cudaEventRecord(round.set.exchanged.handle(), exchanges_.handle()));
}

void NcclBf16Reduction::sum(cudaStream_t stream, const Comm::ReduceScatter& args, const Round& round) const {
  TOKAMAK_CUDA(cudaStreamWaitEvent(stream, round.set.exchanged.handle(), 0));
  const int64_t piece = round.piece;
  const bf16* received = round.send + ranks_ * piece;
  if (!across_) {
    const ContributionPiece at{ranks_, args.slice.count(), round.begin, piece};
    return sum_contributions(stream, received, args.slice.as<float>(), at);
  }
  // Sent data may be overwritten. The node's f32 sums (nodes, piece) fit there, as a node has two ranks or more.
  auto* const sums = reinterpret_cast<float*>(round.send);
  const auto of_node = static_cast<int>(nodes_.front().size());
  for (size_t n = 0; n < nodes_.size(); ++n, received += of_node * piece) {
    sum_contributions(stream, received, sums + static_cast<int64_t>(n) * piece, {of_node, piece, 0, piece});
  }
  TOKAMAK_NCCL(ncclReduceScatter(sums, args.slice.as<float>() + round.begin, static_cast<size_t>(piece), ncclFloat32,
                                 ncclSum, across_->get(), stream));
}

// Rounds k and k + 2 share a set of buffers. In stream order, round k + 2 is rounded after the sums of round k. These
// have waited for the exchange of round k.
void NcclBf16Reduction::run(cudaStream_t stream, const Comm::ReduceScatter& args) const {
  const int64_t length = args.slice.count();
  const ExchangeRounds rounds{ranks_, length};
  std::optional<Round> last;
  for (int64_t begin = 0, k = 0; begin < length; begin += rounds.longest_piece(), ++k) {
    const int64_t set = k % rounds.in_flight();
    const Round round{.send = args.scratch.as<bf16>() + set * rounds.scratch_elements(),
                      .set = sets_[set],
                      .begin = begin,
                      .piece = std::min(rounds.longest_piece(), length - begin)};
    send_contributions(stream, args, round);
    if (last) sum(stream, args, *last);
    last.emplace(round);
  }
  if (last) sum(stream, args, *last);
}

}  // namespace tokamak

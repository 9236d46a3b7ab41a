#include "comm/transfers.h"

#include <algorithm>
#include <cstring>

namespace tokamak {

std::vector<Tensor> tensors_with(int peer, std::span<const Comm::Transfer> transfers) {
  std::vector<Tensor> tensors;
  for (const Comm::Transfer& transfer : transfers) {
    if (transfer.peer == peer) tensors.push_back(transfer.tensor);
  }
  return tensors;
}

bool meet(const std::vector<Tensor>& sent, const std::vector<Tensor>& received) {
  return std::equal(sent.begin(), sent.end(), received.begin(), received.end(),
                    [](const Tensor& s, const Tensor& r) { return s.dtype() == r.dtype() && s.count() == r.count(); });
}

void copy_each(const std::vector<Tensor>& from, const std::vector<Tensor>& to) {
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i].data() != to[i].data()) std::memcpy(to[i].data(), from[i].data(), from[i].bytes());
  }
}

}  // namespace tokamak

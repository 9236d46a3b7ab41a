// The transfers of Comm::exchange, by peer: lists of one pair of ranks meet in their order.
#pragma once

#include <span>
#include <vector>

#include "comm/comm.h"

namespace tokamak {

// The tensors that are sent to `peer`, or received from it.
std::vector<Tensor> tensors_with(int peer, std::span<const Comm::Transfer> transfers);

// Whether each sent tensor meets one of the same dtype and elements.
bool meet(const std::vector<Tensor>& sent, const std::vector<Tensor>& received);

// Copies in host memory. The lists meet; a tensor may be its own copy.
void copy_each(const std::vector<Tensor>& from, const std::vector<Tensor>& to);

}  // namespace tokamak

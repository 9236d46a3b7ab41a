// NCCL's environment variables. We never override the user's. We set the launch order, and the algorithm if sums must
// have the same bits from run to run. If ranks share a GPU, which NCCL refuses by default, we set more.
#pragma once

#include <string>

namespace tokamak {

// "NCCL_DEBUG=INFO NCCL_IB_HCA=mlx5": the NCCL variables of an environment (as `environ`), sorted; "" if none.
std::string nccl_settings(const char* const* environment);

// Makes communicators launch in the order of the host's calls, which is the same on all ranks. Otherwise GPUs may start
// a gather and a reduction in different orders, which is safe only while both fit. Call before any NCCL call.
void order_launches();

// For runtime.deterministic: makes NCCL sum along rings, hence in the order of the ranks there. In a switch (NVLS,
// CollNet, symmetric kernels with multicast) NCCL states no order. Call before any NCCL call. Returns a warning if the
// user's NCCL_ALGO allows algorithms without a fixed order; else "".
std::string fix_order_of_sums();

// Makes NCCL treat this process as a separate machine, so that it does not check whether ranks share a GPU. For ranks
// of one machine, before any NCCL call. Variables set by the user stay.
void let_ranks_share_gpu(int rank);

}  // namespace tokamak

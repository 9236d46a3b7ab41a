// NCCL's settings are environment variables, and the user's, which we never override: we set the order of launches, and
// more only where ranks share a GPU, which NCCL refuses by default.
#pragma once

#include <string>

namespace tokamak {

// "NCCL_DEBUG=INFO NCCL_IB_HCA=mlx5": what of an environment (as `environ`) concerns NCCL, sorted; "" where nothing.
std::string nccl_settings(const char* const* environment);

// Communicators launch in the order of the host's calls, which is the same on all ranks: without that, the GPUs may
// start a gather and a reduction in different orders, which is safe only as long as both fit. Before NCCL's first call.
void order_launches();

// Makes NCCL take this process for a machine of its own, so that it asks nothing of whose GPU is whose. For ranks of
// one machine, and before NCCL's first call. What the user has set stays.
void let_ranks_share_gpu(int rank);

}  // namespace tokamak

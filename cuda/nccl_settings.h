// NCCL's settings are environment variables, and the user's: we read them for the log, and set some only where ranks
// share a GPU, which NCCL refuses by default.
#pragma once

#include <string>

namespace tokamak {

// "NCCL_DEBUG=INFO NCCL_IB_HCA=mlx5": what of an environment (as `environ`) concerns NCCL, sorted; "" where nothing.
std::string nccl_settings(const char* const* environment);

// Makes NCCL take this process for a machine of its own, so that it asks nothing of whose GPU is whose. For ranks of
// one machine, and before NCCL's first call. What the user has set stays.
void let_ranks_share_gpu(int rank);

}  // namespace tokamak

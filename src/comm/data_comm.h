// The group by which ranks exchange tensors. Host memory travels like the control group's messages, GPU memory by NCCL.
#pragma once

#include <memory>

#include "backend/device.h"
#include "backend/options.h"
#include "comm/comm.h"

namespace tokamak {

// Makes a group of all ranks of `control`, for tensors of `device`; both outlive it. `reduce` is the dtype of its
// reductions. Collective; SharedError if the group cannot be made on a rank.
std::unique_ptr<Comm> make_data_comm(Comm& control, Device& device, const RuntimeOptions& options,
                                     Precision reduce = Precision::kF32);

// Makes a group over NCCL, for a CUDA device: cuda/nccl/comm.cc, or nccl_absent.cc in a build without NCCL.
std::unique_ptr<Comm> make_nccl_comm(Comm& control, Device& device, const RuntimeOptions& options, Precision reduce);

// Bytes that each NCCL communicator may take at its first collectives: an estimate, from published sizes.
constexpr int64_t kNcclReserveBytes = int64_t{256} << 20;
constexpr int kNcclCommunicators = 2;  // at least, in a group of two streams: for gathers, for reductions

}  // namespace tokamak

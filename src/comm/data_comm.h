// The group by which ranks exchange tensors, chosen by where these lie: host memory travels as the control group's own
// messages do, a GPU's by NCCL.
#pragma once

#include <memory>

#include "backend/device.h"
#include "backend/options.h"
#include "comm/comm.h"

namespace tokamak {

// All ranks of `control`, for tensors of `device`; both outlive it. `reduce`: what its reductions will be in.
// Collective; SharedError where a rank lacks what it takes.
std::unique_ptr<Comm> make_data_comm(Comm& control, Device& device, const RuntimeOptions& options,
                                     Precision reduce = Precision::kF32);

// By NCCL, for a CUDA device: cuda/nccl/comm.cc, or nccl_absent.cc in a build without NCCL.
std::unique_ptr<Comm> make_nccl_comm(Comm& control, Device& device, const RuntimeOptions& options, Precision reduce);

// What each of NCCL's communicators may take at its first collectives: an estimate, from published sizes.
constexpr int64_t kNcclReserveBytes = int64_t{256} << 20;
constexpr int kNcclCommunicators = 2;  // of a group of two streams at least: for gathers and for reductions

}  // namespace tokamak

// The group by which ranks exchange tensors, chosen by where these lie: host memory travels as the control group's own
// messages do, a GPU's by NCCL.
#pragma once

#include <memory>

#include "backend/device.h"
#include "backend/options.h"
#include "dist/comm.h"

namespace tokamak {

// All ranks of `control`, for tensors of `device`; both outlive it. Collective; SharedError where a rank lacks what it
// takes.
std::unique_ptr<Comm> make_data_comm(Comm& control, Device& device, const RuntimeOptions& options);

// By NCCL, for a CUDA device: cuda/nccl_comm.cc, or nccl_absent.cc in a build without NCCL.
std::unique_ptr<Comm> make_nccl_comm(Comm& control, Device& device, const RuntimeOptions& options);

}  // namespace tokamak

// Chooses a backend: a device and the operations that run on it.
#pragma once

#include <memory>
#include <string>

#include "backend/device.h"
#include "backend/ops.h"
#include "backend/options.h"

namespace tokamak {

struct Backend {
  std::unique_ptr<Device> device;
  std::unique_ptr<Ops> ops;
};

// `local_rank` on this node selects the GPU; `ranks_on_cores` ranks, including this one, share this process's cores.
// Error(kDevice) if the requested backend is unavailable; logs which one `auto` selected.
Backend make_backend(const RuntimeOptions& options, int local_rank, int ranks_on_cores);

Backend make_cpu_backend();  // uses the threads of parallel_for

// CUDA support of this program and this machine.
struct CudaPresence {
  bool built_in = false;
  int devices = 0;
  std::string missing;  // why there are no devices: "this build has no CUDA", "no NVIDIA driver on this machine"
};

// Defined in cuda/, or in cuda_absent.cc in a build without CUDA.
CudaPresence cuda_presence();
Backend make_cuda_backend(const RuntimeOptions& options, int local_rank);

// A plan-only backend of either kind (plan_device.h), also on machines without a GPU.
Backend plan_cpu_backend();
Backend plan_cuda_backend(const RuntimeOptions& options);

// Threads of one rank: as configured, or an equal share of the `cores` that the ranks share; at least 1.
int threads_of_rank(const RuntimeOptions& options, int cores, int ranks_on_cores);

}  // namespace tokamak

// The choice of a backend. A backend is a device and the operations that run on it.
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

// `local_rank` on this node picks the GPU; `ranks_on_cores` ranks, this one included, may run on this process's cores.
// Error(kDevice) where the backend asked for is missing; says in the log which one `auto` took.
Backend make_backend(const RuntimeOptions& options, int local_rank, int ranks_on_cores);

Backend make_cpu_backend();  // threads as parallel_for has them

// What this program and this machine have of CUDA.
struct CudaPresence {
  bool built_in = false;
  int devices = 0;
  std::string missing;  // why there are none: "this build has no CUDA", "no NVIDIA driver on this machine"
};

// In cuda/, or in cuda_absent.cc in a build without CUDA.
CudaPresence cuda_presence();
Backend make_cuda_backend(const RuntimeOptions& options, int local_rank);

// Of either kind, with addresses instead of memory (plan_device.h): for plans, on machines without a GPU too.
Backend plan_cpu_backend();
Backend plan_cuda_backend(const RuntimeOptions& options);

// Threads of one rank: what the options say, or an equal share of the `cores` that the ranks on them may use; at
// least 1.
int threads_of_rank(const RuntimeOptions& options, int cores, int ranks_on_cores);

}  // namespace tokamak

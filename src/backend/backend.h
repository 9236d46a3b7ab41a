// The choice of a backend. A backend is a device and the operations that run on it.
#pragma once

#include <memory>

#include "backend/device.h"
#include "backend/ops.h"
#include "backend/options.h"

namespace tokamak {

struct Backend {
  std::unique_ptr<Device> device;
  std::unique_ptr<Ops> ops;
};

// `local_rank` of `local_size` on this node: shares its cores, or picks its GPU. Error(kDevice) where the backend asked
// for is missing; says in the log which one `auto` took.
Backend make_backend(const RuntimeOptions& options, int local_rank, int local_size);

Backend make_cpu_backend();                 // threads as parallel_for has them
Backend make_cuda_backend(int local_rank);  // cuda/, or cuda_absent.cc in a build without CUDA
bool cuda_built_in();
int cuda_device_count();  // 0 also where the driver is missing

// Threads of one rank: what the options say, or all cores of this process where the launcher gave it a part of the node
// (`own_cores` of `node_cores`), or an equal share of the node; at least 1.
int threads_of_rank(const RuntimeOptions& options, int own_cores, int node_cores, int local_size);

}  // namespace tokamak

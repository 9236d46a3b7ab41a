#include "backend/backend.h"

#include <algorithm>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/device.h"
#include "backend/plan_device.h"
#include "base/error.h"
#include "base/log.h"
#include "base/parallel_for.h"

namespace tokamak {

int threads_of_rank(const RuntimeOptions& options, int cores, int ranks_on_cores) {
  if (!options.threads_per_rank.is_auto()) return static_cast<int>(options.threads_per_rank.value);
  return std::max(1, cores / std::max(1, ranks_on_cores));
}

Backend make_cpu_backend() { return {std::make_unique<CpuDevice>(), std::make_unique<CpuOps>()}; }

Backend plan_cpu_backend() { return make_plan_backend({.description = "CPU"}, std::make_unique<CpuOps>()); }

Backend make_backend(const RuntimeOptions& options, int local_rank, int ranks_on_cores) {
  set_thread_count(threads_of_rank(options, available_cores(), ranks_on_cores));
  const CudaPresence presence = cuda_presence();
  if (options.backend == BackendKind::kCuda && presence.devices == 0) {
    fail(Kind::kDevice, str("runtime.backend is cuda: ", presence.missing),
         presence.built_in
             ? "nvidia-smi shows what the driver sees; runtime.backend: cpu runs without"
             : "configure with cmake --preset cuda, where nvcc is on the PATH; runtime.backend: cpu runs without");
  }
  const bool cuda = options.backend != BackendKind::kCpu && presence.devices > 0;
  Backend backend = cuda ? make_cuda_backend(options, local_rank) : make_cpu_backend();
  if (options.backend == BackendKind::kAuto) {
    log::info("backend ", cuda ? "cuda" : str("cpu: ", presence.missing), " (runtime.backend: auto)");
  }
  log::info("device ", backend.device->description());
  return backend;
}

}  // namespace tokamak

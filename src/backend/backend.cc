#include "backend/backend.h"

#include <algorithm>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/device.h"
#include "base/error.h"
#include "base/log.h"
#include "base/parallel_for.h"

namespace tokamak {

int threads_of_rank(const RuntimeOptions& options, int cores, int sharers) {
  if (!options.threads_per_rank.is_auto()) return static_cast<int>(options.threads_per_rank.value);
  return std::max(1, cores / std::max(1, sharers));
}

Backend make_cpu_backend() { return {std::make_unique<CpuDevice>(), std::make_unique<CpuOps>()}; }

Backend make_backend(const RuntimeOptions& options, int local_rank, int sharers) {
  set_thread_count(threads_of_rank(options, available_cores(), sharers));
  const bool cuda =
      options.backend == BackendKind::kCuda || (options.backend == BackendKind::kAuto && cuda_device_count() > 0);
  if (cuda && cuda_built_in() && cuda_device_count() == 0) {
    fail(Kind::kDevice, "runtime.backend is cuda, and this machine has no usable NVIDIA GPU",
         "nvidia-smi shows what the driver sees; runtime.backend: cpu runs without");
  }
  Backend backend = cuda ? make_cuda_backend(local_rank) : make_cpu_backend();
  if (options.backend == BackendKind::kAuto) {
    log::info("backend ", cuda ? "cuda" : "cpu", " (auto",
              cuda              ? ""
              : cuda_built_in() ? ": no NVIDIA GPU here"
                                : ": this build has no CUDA",
              ")");
  }
  log::info("device ", backend.device->description());
  return backend;
}

}  // namespace tokamak

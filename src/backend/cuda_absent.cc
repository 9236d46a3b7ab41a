// Replaces cuda/ in a build without CUDA.
#include "backend/backend.h"
#include "base/error.h"

namespace tokamak {

CudaPresence cuda_presence() { return {.missing = "this build has no CUDA"}; }

Backend make_cuda_backend(const RuntimeOptions&, int) {
  fail(Kind::kDevice, "this build has no CUDA backend", "runtime.backend: cpu");
}

Backend plan_cuda_backend(const RuntimeOptions&) {
  fail(Kind::kDevice, "this build has no CUDA backend to plan for", "runtime.backend: cpu");
}

}  // namespace tokamak

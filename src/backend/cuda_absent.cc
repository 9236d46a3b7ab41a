// Stands in for cuda/ in a build without CUDA.
#include "backend/backend.h"
#include "base/error.h"

namespace tokamak {

CudaPresence cuda_presence() { return {.missing = "this build has no CUDA"}; }

Backend make_cuda_backend(const RuntimeOptions&, int) {
  fail(Kind::kDevice, "this build has no CUDA backend", "runtime.backend: cpu");
}

}  // namespace tokamak

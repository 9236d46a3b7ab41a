// Stands in for cuda/ in a build without CUDA.
#include "backend/backend.h"
#include "base/error.h"

namespace tokamak {

bool cuda_built_in() { return false; }

int cuda_device_count() { return 0; }

Backend make_cuda_backend(int) { fail(Kind::kDevice, "this build has no CUDA backend", "runtime.backend: cpu"); }

}  // namespace tokamak

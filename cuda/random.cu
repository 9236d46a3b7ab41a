// Placeholder of the family; to be written.
#include "base/error.h"
#include "cuda/cuda_ops.h"
#include "cuda/device.h"
#include "cuda/launch.h"

namespace tokamak {

void CudaOps::do_random_normal(Stream&, const RandomNormal&) { TOKAMAK_CHECK(false, "not written"); }

}  // namespace tokamak

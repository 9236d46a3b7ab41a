// Placeholder of the family; to be written.
#include "base/error.h"
#include "cuda/cuda_ops.h"
#include "cuda/device.h"
#include "cuda/launch.h"
#include "cuda/workspace.h"

namespace tokamak {

void CudaOps::do_rmsnorm(Stream&, const RmsNorm&) { TOKAMAK_CHECK(false, "not written"); }
void CudaOps::do_rmsnorm_backward(Stream&, const RmsNormBackward&) { TOKAMAK_CHECK(false, "not written"); }

int64_t rmsnorm_backward_scratch(const Workload&) { return 0; }

}  // namespace tokamak

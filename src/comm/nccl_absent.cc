// Replaces cuda/nccl/comm.cc in a build without NCCL.
#include "base/error.h"
#include "comm/collective_error.h"
#include "comm/data_comm.h"

namespace tokamak {

std::unique_ptr<Comm> make_nccl_comm(Comm& control, Device&, const RuntimeOptions&, Precision) {
  throw SharedError(Kind::kDevice, str(control.size(), " ranks on GPUs take NCCL, which this build has not"),
                    "a build has NCCL where CMake finds nccl.h; one rank, or runtime.backend: cpu, runs without");
}

}  // namespace tokamak

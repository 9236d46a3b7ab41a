// The first collectives of a group run while it is made. NCCL then connects the ranks and takes most of its memory. So
// memory is measured after them, and the error of a hang names the communicator.
#pragma once

#include <cstdint>
#include <string>

#include "backend/options.h"
#include "comm/comm.h"
#include "cuda/device.h"

namespace tokamak {

struct NcclWarmUp {
  int64_t bytes = 0;  // about the size of a large collective; 0: no warm-up
  Precision reduce = Precision::kF32;
  std::string gathers, reductions, bf16_reductions;  // names of the communicators, for messages
};

// Runs each collective of a step at two sizes, since NCCL chooses algorithms by size: slices of a few numbers, and
// `bytes` in all. The buffers are exchanged memory, registered as those of a step are, so NCCL takes the same paths.
// They are released at the end; nothing reads the results. Collective. Error(kComm) names the communicator; a hang
// ends the process with that name after TOKAMAK_NCCL_SECONDS.
void warm_up(Comm& group, CudaDevice& device, const NcclWarmUp& options);

}  // namespace tokamak

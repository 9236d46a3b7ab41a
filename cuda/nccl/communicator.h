// One of NCCL's communicators, and what all of them in a process share.
#pragma once

#include <nccl.h>

#include <string>

#include "comm/comm.h"
#include "cuda/nccl/memory.h"
#include "cuda/nccl/watcher.h"

namespace tokamak {

struct NcclShared {
  NcclShared(int rank, CudaDevice& device) : watcher(rank), memory(device) {}
  NcclWatcher watcher;
  NcclMemory memory;
  std::string node;  // this rank's, as NCCL gets it: ranks of one name share it
  int max_ctas = 0;  // of a communicator; 0: NCCL chooses
};

class NcclCommunicator {
 public:
  // Of all ranks of `control`, which may go afterwards. Collective.
  NcclCommunicator(Comm& control, NcclShared& shared);
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  ncclComm_t get() const { return comm_; }

 private:
  NcclShared& shared_;
  ncclComm_t comm_ = nullptr;
};

}  // namespace tokamak

// An NCCL communicator, and the state shared by all communicators of a process.
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
  std::string node;  // name of this rank's node, as passed to NCCL
  int max_ctas = 0;  // per communicator; 0: NCCL chooses
};

class NcclCommunicator {
 public:
  // Contains all ranks of `control`, which need not outlive this. Collective.
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

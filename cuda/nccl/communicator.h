// An NCCL communicator, and the state shared by all communicators of a process.
#pragma once

#include <nccl.h>

#include <cstdint>
#include <string>

#include "comm/comm.h"
#include "cuda/nccl/memory.h"
#include "cuda/nccl/watcher.h"

namespace tokamak {

// The collectives of a communicator. Gathers need no arithmetic, so copy engines can do them.
enum class NcclUse { kGathers, kReductions };

struct NcclShared {
  NcclShared(int own_rank, CudaDevice& gpu) : rank(own_rank), device(gpu), watcher(own_rank), memory(gpu) {}
  int rank;  // among all ranks
  CudaDevice& device;
  NcclWatcher watcher;
  NcclMemory memory;
  std::string node;  // name of this rank's node, as passed to NCCL
  int max_ctas = 0;  // per communicator; 0: NCCL chooses
  int64_t warm_up_bytes = 0;
  bool deterministic = false;
};

class NcclCommunicator {
 public:
  // Contains all ranks of `control`, which need not outlive this. `group` names them in messages. Collective.
  NcclCommunicator(Comm& control, NcclShared& shared, NcclUse use, const std::string& group);
  // The ranks of `parent` that pass the same color, at least 0. `part` holds these ranks and may be destroyed
  // afterwards; `parent` must live on. The two share connections and their memory: NCCL runs their collectives one
  // after another, and an abort of one aborts the other. Collective over `parent`.
  NcclCommunicator(const NcclCommunicator& parent, int color, Comm& part, const std::string& group);
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  ncclComm_t get() const { return comm_; }
  NcclUse use() const { return use_; }
  const std::string& name() const { return name_; }  // "gathers of ranks 0 to 7"
  NcclMemory::Member member() const;                 // this communicator, as NcclMemory needs it

 private:
  ncclConfig_t config() const;
  void made(Comm& control, double seconds);

  NcclShared& shared_;
  NcclUse use_;
  std::string name_;
  ncclComm_t comm_ = nullptr;
};

// "ranks 0 to 7", "ranks 1, 9, 17, 25"; the first ones of many. Sorted, at least one.
std::string text_of_ranks(const std::vector<int>& ranks);

}  // namespace tokamak

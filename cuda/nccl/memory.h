// Memory that NCCL moves best: from ncclMemAlloc, which switches and peers can reach (NVLS, SHARP), and registered with
// each communicator, as a symmetric window where there are such, so that transfers need no copy. NCCL leaves undefined
// what comes of buffers that only some ranks have registered: what one rank cannot have all do without, and it is said.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <vector>

#include "comm/comm.h"
#include "cuda/device.h"

namespace tokamak {

class NcclMemory final : public ExchangedMemory {
 public:
  explicit NcclMemory(CudaDevice& device);  // gives that device's exchanged memory from now on
  ~NcclMemory() override;                   // all of it is released by then
  NcclMemory(const NcclMemory&) = delete;
  NcclMemory& operator=(const NcclMemory&) = delete;

  void* allocate(size_t bytes) override;
  bool release(void* memory) noexcept override;

  // Registers what was allocated since the last time with `comms`. Collective over `control`: all ranks of theirs, each
  // of which has allocated the same.
  void join(Comm& control, const std::vector<ncclComm_t>& comms);
  void leave(ncclComm_t comm) noexcept;  // before the communicator is destroyed

 private:
  struct Registration {
    ncclComm_t comm;
    void* handle;
    bool window;  // else a plain registration
  };
  static void undo(const Registration& registration) noexcept;

  struct Block {
    void* memory;
    size_t bytes;
    bool joined = false;  // registered, or done without
    std::vector<Registration> registrations;
  };
  ncclResult_t add(Block& block, ncclComm_t comm);

  CudaDevice& device_;
  std::vector<Block> blocks_;
  bool refused_ = false;  // ncclMemAlloc did, since the last join
};

}  // namespace tokamak

// Memory for NCCL comes from ncclMemAlloc, so switches and peers can access it (NVLS, SHARP). It is registered with
// each communicator for zero-copy transfers, as a symmetric window if supported and wanted. NCCL leaves the behaviour
// undefined if only some ranks register a buffer. So if one rank cannot, no rank does, and the log says so.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <vector>

#include "comm/comm.h"
#include "cuda/device.h"

namespace tokamak {

// How a buffer is registered with a communicator. A window lets NCCL choose kernels that use all ranks' buffers at
// once. Kernels that sum may do so in a switch, in an order that NCCL does not document.
enum class NcclForm { kWindow, kPlain };

class NcclMemory final : public ExchangedMemory {
 public:
  explicit NcclMemory(CudaDevice& device);  // becomes the device's allocator of exchanged memory
  ~NcclMemory() override;                   // all memory must be released before
  NcclMemory(const NcclMemory&) = delete;
  NcclMemory& operator=(const NcclMemory&) = delete;

  void* allocate(size_t bytes) override;
  bool release(void* memory) noexcept override;

  struct Member {
    ncclComm_t comm;
    NcclForm form;  // kWindow if the library has windows
  };
  // Registers everything allocated since the last call with `members`. Collective over `control`, which contains all
  // their ranks; each rank must have allocated buffers of the same sizes.
  void join(Comm& control, const std::vector<Member>& members);
  void leave(ncclComm_t comm) noexcept;  // before the communicator is destroyed

 private:
  struct Registration {
    ncclComm_t comm;
    void* handle;
    NcclForm form;
  };
  static void undo(const Registration& registration) noexcept;

  struct Block {
    void* memory;
    size_t bytes;
    bool joined = false;  // registered, or refused on all ranks
    std::vector<Registration> registrations;
  };
  ncclResult_t add(Block& block, const Member& member);

  CudaDevice& device_;
  std::vector<Block> blocks_;
  bool refused_ = false;  // ncclMemAlloc failed since the last join
};

}  // namespace tokamak

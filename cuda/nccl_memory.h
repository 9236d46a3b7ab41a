// Memory that NCCL moves best: from ncclMemAlloc, which switches and peers can reach (NVLS, SHARP), and registered with
// each communicator, so that transfers need no copy. What cannot be had is done without, and said once.
#pragma once

#include <nccl.h>

#include <algorithm>
#include <cstddef>
#include <vector>

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

  void join(ncclComm_t comm);            // registers what is allocated now and not registered yet
  void leave(ncclComm_t comm) noexcept;  // before the communicator is destroyed

 private:
  struct Registration {
    ncclComm_t comm;
    void* handle;
  };
  struct Block {
    void* memory;
    size_t bytes;
    std::vector<Registration> registrations;

    auto find(ncclComm_t comm) {
      return std::find_if(registrations.begin(), registrations.end(), [&](const auto& r) { return r.comm == comm; });
    }
  };

  CudaDevice& device_;
  std::vector<Block> blocks_;
  bool told_ = false;
};

}  // namespace tokamak

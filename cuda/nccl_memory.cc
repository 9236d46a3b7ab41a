#include "cuda/nccl_memory.h"

#include <algorithm>

#include "base/log.h"
#include "cuda/nccl_check.h"

namespace tokamak {

NcclMemory::NcclMemory(CudaDevice& device) : device_(device) { device_.exchange_through(this); }
NcclMemory::~NcclMemory() { device_.exchange_through(nullptr); }

void* NcclMemory::allocate(size_t bytes) {
  void* memory = nullptr;
  if (const ncclResult_t result = ncclMemAlloc(&memory, bytes); result != ncclSuccess) {
    cudaGetLastError();  // the runtime keeps it, and it is told here
    log::warning("no memory from ncclMemAlloc, but from cudaMalloc: ", nccl_words(result, nullptr));
    return nullptr;
  }
  blocks_.push_back({memory, bytes, {}});
  return memory;
}

bool NcclMemory::release(void* memory) noexcept {
  const auto block = std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& b) { return b.memory == memory; });
  if (block == blocks_.end()) return false;
  cudaDeviceSynchronize();  // which cudaFree does, and ncclMemFree does not
  for (const Registration& r : block->registrations) ncclCommDeregister(r.comm, r.handle);
  ncclMemFree(memory);
  blocks_.erase(block);
  return true;
}

void NcclMemory::join(ncclComm_t comm) {
  for (Block& block : blocks_) {
    if (block.find(comm) != block.registrations.end()) continue;
    void* handle = nullptr;
    const ncclResult_t result = ncclCommRegister(comm, block.memory, block.bytes, &handle);
    if (result == ncclSuccess) {
      block.registrations.push_back({comm, handle});
    } else if (!told_) {
      told_ = true;
      log::warning("buffers are not registered with NCCL: ", nccl_words(result, comm));
    }
  }
}

void NcclMemory::leave(ncclComm_t comm) noexcept {
  for (Block& block : blocks_) {
    const auto mine = block.find(comm);
    if (mine == block.registrations.end()) continue;
    ncclCommDeregister(comm, mine->handle);
    block.registrations.erase(mine);
  }
}

}  // namespace tokamak

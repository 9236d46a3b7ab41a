#include "cuda/nccl/memory.h"

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "cuda/nccl/check.h"
#include "cuda/nccl/library.h"

namespace tokamak {

NcclMemory::NcclMemory(CudaDevice& device) : device_(device) { device_.exchange_through(this); }
NcclMemory::~NcclMemory() { device_.exchange_through(nullptr); }

void* NcclMemory::allocate(size_t bytes) {
  void* memory = nullptr;
  if (const ncclResult_t result = ncclMemAlloc(&memory, bytes); result != ncclSuccess) {
    cudaGetLastError();  // clears the runtime's sticky error; reported here
    log::warning("no memory from ncclMemAlloc, but from cudaMalloc: ", nccl_words(result, nullptr));
    refused_ = true;
    return nullptr;
  }
  blocks_.push_back({memory, bytes});
  return memory;
}

bool NcclMemory::release(void* memory) noexcept {
  const auto block = std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& b) { return b.memory == memory; });
  if (block == blocks_.end()) return false;
  cudaDeviceSynchronize();  // cudaFree synchronises, ncclMemFree does not
  for (const Registration& r : block->registrations) undo(r);
  ncclMemFree(memory);
  blocks_.erase(block);
  return true;
}

void NcclMemory::undo(const Registration& r) noexcept {
  r.form == NcclForm::kWindow ? deregister_window(r.comm, r.handle) : ncclCommDeregister(r.comm, r.handle);
}

ncclResult_t NcclMemory::add(Block& block, const Member& member) {
  void* handle = nullptr;
  ncclResult_t result = ncclSuccess;
  if (member.form == NcclForm::kWindow) result = register_window(member.comm, block.memory, block.bytes, &handle);
  const NcclForm form = handle != nullptr ? NcclForm::kWindow : NcclForm::kPlain;
  if (result == ncclSuccess && form == NcclForm::kPlain) {
    result = ncclCommRegister(member.comm, block.memory, block.bytes, &handle);
  }
  if (result == ncclSuccess) block.registrations.push_back({member.comm, handle, form});
  return result;
}

void NcclMemory::join(Comm& control, const std::vector<Member>& members) {
  const bool possible = control.max(refused_ ? 1 : 0) == 0;
  refused_ = false;
  const Stopwatch watch;
  ncclResult_t worst = ncclSuccess;
  size_t bytes = 0;
  std::vector<Block*> fresh;
  for (Block& block : blocks_) {
    if (block.joined) continue;
    block.joined = true;
    fresh.push_back(&block);
    bytes += block.bytes;
    for (const Member& member : members) {  // also after a failure: creating a window is collective
      if (!possible) break;
      if (const ncclResult_t result = add(block, member); result != ncclSuccess) worst = result;
    }
  }
  const bool done = control.max(worst == ncclSuccess ? 0 : 1) == 0 && possible;
  if (!done) {
    for (Block* block : fresh) {
      for (const Registration& r : block->registrations) undo(r);
      block->registrations.clear();
    }
  }
  if (worst != ncclSuccess) log::warning("registering buffers with NCCL: ", nccl_words(worst, nullptr));
  if (control.rank() != 0) return;
  if (!done) return log::warning("buffers are not registered with NCCL, since they could not be on every rank");
  if (fresh.empty()) return;
  const auto& first = fresh.front()->registrations;
  const auto windows =
      std::count_if(first.begin(), first.end(), [](const Registration& r) { return r.form == NcclForm::kWindow; });
  log::info("NCCL: ", human_bytes(double(bytes)), " in ", fresh.size(), " blocks registered with ", members.size(),
            " communicator(s), as symmetric windows with ", windows, " of them, in ", fixed(watch.seconds(), 3), " s");
}

void NcclMemory::leave(ncclComm_t comm) noexcept {
  for (Block& block : blocks_) {
    std::erase_if(block.registrations, [&](const Registration& r) {
      if (r.comm != comm) return false;
      undo(r);
      return true;
    });
  }
}

}  // namespace tokamak

#include "cuda/nccl/watcher.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "base/error.h"
#include "base/log.h"
#include "base/process.h"
#include "cuda/nccl/check.h"

namespace tokamak {

namespace {

constexpr std::chrono::milliseconds kInterval(200);

}  // namespace

NcclWatcher::NcclWatcher(int rank) : rank_(rank), thread_([this] { run(); }) {}

NcclWatcher::~NcclWatcher() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void NcclWatcher::watch(ncclComm_t comm) {
  const std::lock_guard lock(mutex_);
  comms_.push_back(comm);
}

void NcclWatcher::forget(ncclComm_t comm) {
  const std::lock_guard lock(mutex_);
  comms_.erase(std::remove(comms_.begin(), comms_.end(), comm), comms_.end());
}

void NcclWatcher::run() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kInterval, [this] { return stop_; })) look();
}

void NcclWatcher::look() const {
  for (const ncclComm_t comm : comms_) {
    ncclResult_t error = ncclSuccess;
    const ncclResult_t answer = ncclCommGetAsyncError(comm, &error);
    if (answer != ncclSuccess) error = answer;
    if (error == ncclSuccess || error == ncclInProgress) continue;
    log::error("rank ", rank_, " on ", host_name(), ": NCCL: ", nccl_words(error, comm),
               "\n  hint: the rank that failed first says why; NCCL_DEBUG=INFO makes NCCL log more");
    log::flush();
    // The others follow: comm/watch.h ends them, since a process is gone without disconnecting.
    std::_Exit(static_cast<int>(Kind::kComm));
  }
}

}  // namespace tokamak

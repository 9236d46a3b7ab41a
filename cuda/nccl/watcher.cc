#include "cuda/nccl/watcher.h"

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

void NcclWatcher::watch(ncclComm_t comm, const std::string& name) {
  const std::lock_guard lock(mutex_);
  watched_.push_back({comm, name});
}

void NcclWatcher::forget(ncclComm_t comm) {
  const std::lock_guard lock(mutex_);
  std::erase_if(watched_, [&](const Watched& watched) { return watched.comm == comm; });
}

void NcclWatcher::run() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kInterval, [this] { return stop_; })) look();
}

void NcclWatcher::look() const {
  for (const auto& [comm, name] : watched_) {
    ncclResult_t error = ncclSuccess;
    const ncclResult_t answer = ncclCommGetAsyncError(comm, &error);
    if (answer != ncclSuccess) error = answer;
    if (error == ncclSuccess || error == ncclInProgress) continue;
    log::error("rank ", rank_, " on ", host_name(), ": NCCL: ", nccl_words(error, comm), " (", name, ")",
               "\n  hint: the rank that failed first says why; NCCL_DEBUG=INFO makes NCCL log more");
    log::flush();
    // The other ranks follow: comm/watch.h ends them, since a process is gone without disconnecting.
    std::_Exit(static_cast<int>(Kind::kComm));
  }
}

}  // namespace tokamak

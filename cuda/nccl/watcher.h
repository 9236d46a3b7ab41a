// A thread that asks every communicator of this process for errors that came after a call had returned: a peer that is
// gone, a broken link. It ends the process, whose main thread may be waiting for the GPU for ever.
#pragma once

#include <nccl.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace tokamak {

class NcclWatcher {
 public:
  explicit NcclWatcher(int rank);  // of the run, for the message
  ~NcclWatcher();
  NcclWatcher(const NcclWatcher&) = delete;
  NcclWatcher& operator=(const NcclWatcher&) = delete;

  void watch(ncclComm_t comm);
  void forget(ncclComm_t comm);  // before it is destroyed

 private:
  void run();
  void look() const;

  int rank_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<ncclComm_t> comms_;
  bool stop_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace tokamak

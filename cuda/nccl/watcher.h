// A thread that polls every communicator of this process for asynchronous errors: a dead peer, a broken link. It ends
// the process, whose main thread may be blocked on the GPU forever.
#pragma once

#include <nccl.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tokamak {

class NcclWatcher {
 public:
  explicit NcclWatcher(int rank);  // this rank, for the message
  ~NcclWatcher();
  NcclWatcher(const NcclWatcher&) = delete;
  NcclWatcher& operator=(const NcclWatcher&) = delete;

  void watch(ncclComm_t comm, const std::string& name);  // `name`: the communicator's, for the message
  void forget(ncclComm_t comm);                          // call before it is destroyed

 private:
  void run();
  void look() const;

  int rank_;
  std::mutex mutex_;
  std::condition_variable wake_;
  struct Watched {
    ncclComm_t comm;
    std::string name;
  };
  std::vector<Watched> watched_;
  bool stop_ = false;
  std::thread thread_;  // last member: the thread uses the others
};

}  // namespace tokamak

// Runs stages on batches of documents, on several threads. Batches come back in the order in which they were submitted,
// so the output does not depend on the number of threads.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "data/prepare/stage.h"

namespace tokamak {

using Batch = std::vector<Document>;

class StagePool {
 public:
  StagePool(MakeStages make, int64_t threads);
  ~StagePool();
  StagePool(const StagePool&) = delete;
  StagePool& operator=(const StagePool&) = delete;

  void submit(Batch batch);
  Batch take();  // waits for the oldest batch and returns all its documents, dropped or not; rethrows its error
  int64_t pending() const { return pending_; }

 private:
  enum class State { kWaiting, kRunning, kDone };
  struct Job {
    Batch batch;
    State state = State::kWaiting;
    std::exception_ptr error;
  };
  void run();

  const MakeStages make_;
  int64_t pending_ = 0;  // submitted and not taken; the owner's thread only
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Job>> jobs_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tokamak

// Reads batches of documents and runs stages on them, on several threads. Batches come back in the order in which they
// were submitted, so the output does not depend on the number of threads.
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
#include "data/text/document.h"

namespace tokamak {

using Batch = std::vector<Document>;

class StagePool {
 public:
  StagePool(MakeStages make, int64_t threads);
  ~StagePool();
  StagePool(const StagePool&) = delete;
  StagePool& operator=(const StagePool&) = delete;

  void submit(std::unique_ptr<DocumentReader> reader);  // one of the threads reads it
  Batch take();  // waits for the oldest batch and returns all its documents, dropped or not; rethrows its error
  int64_t pending() const { return pending_; }

 private:
  struct Job {
    std::unique_ptr<DocumentReader> reader;
    Batch batch;
    bool done = false;
    std::exception_ptr error;
  };
  void run();

  const MakeStages make_;
  int64_t pending_ = 0;  // submitted and not taken; the owner's thread only
  std::mutex mutex_;
  std::condition_variable work_;           // for one thread: a job waits, or stop_
  std::condition_variable front_done_;     // for the owner
  std::deque<std::unique_ptr<Job>> jobs_;  // submitted and not taken
  std::deque<Job*> waiting_;               // those that no thread has begun
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tokamak

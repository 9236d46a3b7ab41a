// The thread that runs a model's batcher. Connections submit completions, whose texts wait in a bounded queue, and
// withdraw them. Between steps it drops the texts of those that left, and admits others.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "infer/batcher.h"
#include "serve/completion.h"

namespace tokamak {

struct EngineThreadOptions {
  int64_t slots = 1;
  int64_t max_queue = 512;                     // texts without a slot
  const std::atomic<int64_t>* step = nullptr;  // of the weights, for the completions that begin; outlives the thread
};

class EngineThread {
 public:
  // `batcher` outlives this, and is used on the thread alone.
  EngineThread(Batcher& batcher, const EngineThreadOptions& options);
  ~EngineThread();
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  // Throws RequestError: 400 for more texts than ever fit, 429 if the queue is full, 503 if the engine has failed.
  // withdraw() must follow, which returns when no text of the completion runs any more.
  void submit(Completion& completion);
  void withdraw(Completion& completion);

  // Waits until the running completions have ended, without admitting others, and calls `load` on the thread. Throws
  // what it throws; the engine has then failed until a later call succeeds.
  void replace_weights(const std::function<void()>& load);

  bool has_failed();

  struct Texts {
    int64_t running, waiting;
  };
  Texts texts();

 private:
  struct QueuedText {
    Completion* completion;
    int64_t choice;
  };
  struct Active {
    Completion* completion;
    std::vector<int64_t> texts;  // that were admitted, as the batcher numbers them
  };

  void run();
  bool has_work() const;
  void drop_leaving();
  void admit();
  void load_weights(std::unique_lock<std::mutex>& lock);
  void step();
  std::vector<Active>::iterator find_active(const Completion* completion);

  Batcher& batcher_;
  EngineThreadOptions options_;

  std::mutex mutex_;
  std::condition_variable changed_, answered_;
  std::deque<QueuedText> queue_;
  std::vector<Active> active_;        // completions whose last piece has not come
  std::vector<Completion*> leaving_;  // which withdraw() waits for
  const std::function<void()>* load_ = nullptr;
  std::exception_ptr load_error_;
  int64_t occupied_ = 0;           // slots
  int64_t failures_ = 0;           // steps in a row
  double seconds_per_text_ = 0.1;  // of the queue, smoothed
  double last_end_;                // of a completion
  bool weights_failed_ = false, stopping_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace tokamak

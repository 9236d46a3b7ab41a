// A stream with a thread of its own: runs work in the order of submission, concurrently with the caller. An exception
// ends the queue: the rest of the work is dropped, and waiters get the exception.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

namespace tokamak {

class WorkQueue {
 public:
  WorkQueue();
  ~WorkQueue();  // finishes its work, because other ranks take part in it
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void push(std::function<void()> work);
  int64_t pushed() const;                // number of pieces of work given so far: a position
  bool reached(int64_t position) const;  // all work up to it is done, and none has thrown: wait() would return at once
  void wait(int64_t position);           // until reached; rethrows the work's exception
  void finish() noexcept;                // waits for all work; an exception stays for wait()

 private:
  void run();

  mutable std::mutex mutex_;
  std::condition_variable given_, done_;
  std::deque<std::function<void()>> work_;
  int64_t pushed_ = 0;
  int64_t finished_ = 0;
  std::exception_ptr error_;
  bool over_ = false;
  std::thread thread_;  // last: it uses the others
};

// The queues of a device, so that no memory is released while work on it is under way.
class WorkQueues {
 public:
  void add(WorkQueue& queue);
  void remove(WorkQueue& queue);
  void finish() noexcept;  // waits for all their work

 private:
  std::mutex mutex_;
  std::set<WorkQueue*> queues_;
};

}  // namespace tokamak

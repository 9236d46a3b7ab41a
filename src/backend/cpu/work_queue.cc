#include "backend/cpu/work_queue.h"

#include <utility>

#include "base/parallel_for.h"
#include "base/service_thread.h"

namespace tokamak {

WorkQueue::WorkQueue() : thread_(start_service_thread("work queue", [this] { run(); })) {}

WorkQueue::~WorkQueue() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  given_.notify_one();
  thread_.join();
}

void WorkQueue::push(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    ++pushed_;
  }
  given_.notify_one();
}

int64_t WorkQueue::pushed() const {
  const std::lock_guard lock(mutex_);
  return pushed_;
}

bool WorkQueue::reached(int64_t position) const {
  const std::lock_guard lock(mutex_);
  return finished_ >= position && error_ == nullptr;
}

void WorkQueue::wait(int64_t position) {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return finished_ >= position; });
  if (error_ != nullptr) std::rethrow_exception(error_);
}

void WorkQueue::finish() noexcept {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return finished_ == pushed_; });
}

void WorkQueue::run() {
  ask_for_short_slices();  // the thread mostly waits for other ranks, and should run as soon as they answer
  set_thread_count(1);     // a team of this thread would take cores from concurrent work
  std::unique_lock lock(mutex_);
  while (true) {
    given_.wait(lock, [this] { return over_ || !work_.empty(); });
    if (work_.empty()) return;
    const std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    const bool dropped = error_ != nullptr;
    lock.unlock();
    std::exception_ptr error;
    try {
      if (!dropped) work();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error != nullptr) error_ = error;
    ++finished_;
    done_.notify_all();
  }
}

void WorkQueues::add(WorkQueue& queue) {
  const std::lock_guard lock(mutex_);
  queues_.insert(&queue);
}

void WorkQueues::remove(WorkQueue& queue) {
  const std::lock_guard lock(mutex_);
  queues_.erase(&queue);
}

void WorkQueues::finish() noexcept {
  const std::lock_guard lock(mutex_);
  for (WorkQueue* queue : queues_) queue->finish();
}

}  // namespace tokamak

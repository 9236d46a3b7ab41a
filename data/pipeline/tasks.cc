#include "data/pipeline/tasks.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "base/staged.h"

namespace tokamak {

namespace {

constexpr auto kLook = std::chrono::milliseconds(200);  // between two looks at others' results
constexpr auto kRemind = std::chrono::minutes(1);

void run_task(const Task& task) {
  StagedOutput output(task.output, StagedOutput::What::kDirectory, Kind::kData);
  task.run(output.staging());
  output.commit();
}

// The tasks of one rank, taken by its threads in order.
class Queue {
 public:
  explicit Queue(std::vector<const Task*> tasks) : tasks_(std::move(tasks)) {}

  void work() {
    for (size_t i = next_++; i < tasks_.size() && !failed_; i = next_++) {
      try {
        run_task(*tasks_[i]);
        ++done_;
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!error_) error_ = std::current_exception();
        failed_ = true;
      }
      const std::lock_guard lock(mutex_);
      if (is_over()) over_.notify_one();
    }
  }

  void wait_a_little() {
    std::unique_lock lock(mutex_);
    over_.wait_for(lock, kLook, [&] { return is_over(); });
  }

  int64_t done() const { return done_; }
  bool is_over() const { return failed_ || done_ == std::ssize(tasks_); }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  const std::vector<const Task*> tasks_;
  std::atomic<size_t> next_ = 0;
  std::atomic<int64_t> done_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::condition_variable over_;
  std::exception_ptr error_;  // read after the threads have ended
};

void run_own(std::vector<const Task*> tasks, int64_t threads, const std::function<void(int64_t done)>& progress) {
  Queue queue(std::move(tasks));
  std::vector<std::thread> workers;
  for (int64_t i = 0; i < threads; ++i) workers.emplace_back([&] { queue.work(); });
  while (!queue.is_over()) {
    progress(queue.done());
    queue.wait_a_little();
  }
  for (std::thread& worker : workers) worker.join();
  queue.rethrow();
  progress(queue.done());
}

}  // namespace

void run_tasks(std::span<const Task> tasks, const Share& share,
               const std::function<void(const TaskProgress&)>& progress) {
  std::vector<const Task*> own, others;
  TaskProgress seen;
  seen.all = std::ssize(tasks);
  for (int64_t i = 0; i < seen.all; ++i) {
    const Task& task = tasks[static_cast<size_t>(i)];
    if (exists(task.output))
      ++seen.found;
    else
      (i % share.ranks == share.rank ? own : others).push_back(&task);
  }
  run_own(std::move(own), std::max<int64_t>(1, share.threads), [&](int64_t done) {
    TaskProgress now = seen;
    now.done = seen.found + done;
    progress(now);
  });
  auto reminded = std::chrono::steady_clock::now();
  for (;;) {
    std::erase_if(others, [](const Task* task) { return exists(task->output); });
    TaskProgress now = seen;
    now.done = seen.all - std::ssize(others);
    now.is_waiting = !others.empty();
    progress(now);
    if (others.empty()) return;
    if (std::chrono::steady_clock::now() - reminded >= kRemind) {
      reminded = std::chrono::steady_clock::now();
      log::info(others.front()->output, " and ", std::ssize(others) - 1,
                " more are left to other ranks: waiting for them");
    }
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace tokamak

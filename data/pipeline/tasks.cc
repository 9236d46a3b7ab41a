#include "data/pipeline/tasks.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "base/staged.h"

namespace tokamak {

namespace {

constexpr auto kLook = std::chrono::milliseconds(200);  // between two looks at others' results
constexpr auto kRemind = std::chrono::minutes(1);

// Does a task, unless it is done or another process is at it. Two processes may begin one at the same moment; one of
// them then loses its place or finds its name taken, and that is no error. Returns whether it is done.
bool attempt(const Task& task) {
  const auto is_others = [&] { return exists(task.output) || has_writer(task.output); };
  if (is_others()) return exists(task.output);
  std::optional<StagedOutput> output;
  try {
    output.emplace(task.output, StagedOutput::What::kDirectory, Kind::kData);
  } catch (const Error&) {
    if (!is_others()) throw;
    return exists(task.output);
  }
  try {
    task.run(output->staging());
    output->commit();
  } catch (const Error&) {
    if (!exists(task.output) && exists(output->staging())) throw;
  }
  return exists(task.output);
}

// Attempts tasks by threads, in order. The first error ends the others after their current task, and is thrown.
class Pass {
 public:
  explicit Pass(const std::vector<const Task*>& tasks) : tasks_(tasks) {}

  void run(int64_t threads, const std::function<void(int64_t done)>& progress) {
    std::vector<std::thread> workers;
    for (int64_t i = 0; i < std::min(threads, std::ssize(tasks_)); ++i) workers.emplace_back([&] { work(); });
    while (!wait_a_little()) progress(done_);
    for (std::thread& worker : workers) worker.join();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void work() {
    for (size_t i = next_++; i < tasks_.size() && !failed_; i = next_++) {
      try {
        done_ += attempt(*tasks_[i]) ? 1 : 0;
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!error_) error_ = std::current_exception();
        failed_ = true;
      }
      const std::lock_guard lock(mutex_);
      ++attempted_;
      over_.notify_one();
    }
  }

  bool wait_a_little() {  // true once it is over
    std::unique_lock lock(mutex_);
    return over_.wait_for(lock, kLook, [&] { return failed_ || attempted_ == tasks_.size(); });
  }

  const std::vector<const Task*>& tasks_;
  std::atomic<size_t> next_ = 0;
  std::atomic<int64_t> done_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::condition_variable over_;
  size_t attempted_ = 0;
  std::exception_ptr error_;
};

}  // namespace

void run_tasks(std::span<const Task> tasks, const Share& share,
               const std::function<void(const TaskProgress&)>& progress) {
  std::vector<const Task*> own, others;
  for (int64_t i = 0; i < std::ssize(tasks); ++i)
    (i % share.ranks == share.rank ? own : others).push_back(&tasks[static_cast<size_t>(i)]);
  const auto forget_done = [](std::vector<const Task*>& left) {
    std::erase_if(left, [](const Task* task) { return exists(task->output); });
  };
  TaskProgress seen;
  seen.all = std::ssize(tasks);
  const auto show = [&](int64_t left, bool is_waiting) {
    seen.done = seen.all - left, seen.is_waiting = is_waiting;
    progress(seen);
  };
  forget_done(own), forget_done(others);
  seen.found = seen.all - std::ssize(own) - std::ssize(others);
  show(std::ssize(own) + std::ssize(others), false);
  const auto attempt_all = [&](const std::vector<const Task*>& some, int64_t left) {
    Pass(some).run(std::max<int64_t>(1, share.threads), [&](int64_t done) { show(left - done, false); });
  };
  attempt_all(own, std::ssize(own) + std::ssize(others));
  // Their ranks begin with the first ones.
  std::vector<const Task*> left = std::move(own);
  left.insert(left.end(), others.rbegin(), others.rend());
  for (auto reminded = std::chrono::steady_clock::now();;) {
    forget_done(left);
    show(std::ssize(left), !left.empty());
    if (left.empty()) return;
    if (std::chrono::steady_clock::now() - reminded >= kRemind) {
      reminded = std::chrono::steady_clock::now();
      log::info(left.front()->output, " and ", std::ssize(left) - 1, " more are with other ranks: waiting for them");
    }
    std::this_thread::sleep_for(kLook);
    attempt_all(left, std::ssize(left));
  }
}

}  // namespace tokamak

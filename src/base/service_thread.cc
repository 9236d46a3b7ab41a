#include "base/service_thread.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace tokamak {

std::thread start_service_thread(const char* name, std::function<void()> body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  try {
    thread = std::thread(std::move(body));
  } catch (const std::system_error& error) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    fail(Kind::kDevice, str("cannot start the thread '", name, "': ", error.code().message()),
         "no memory for its stack, or a limit: see ulimit -v, ulimit -u, and the pids and memory limits of the cgroup");
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread.native_handle(), name);
  return thread;
}

void ask_for_short_slices() {
  // glibc has sched_setattr from 2.41 on, and <linux/sched/types.h> conflicts with its <sched.h>.
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } attributes{};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  attributes.runtime = 100'000;  // ns, the minimum of Linux
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

void let_others_run_first() {
  constexpr int kLeast = 19;
  setpriority(PRIO_PROCESS, 0, kLeast);  // on Linux, only the calling thread: setpriority(2)
}

Timer::Timer(const char* name, double first, double period, std::function<void()> act) {
  thread_ = start_service_thread(name, [this, first, period, act = std::move(act)] {
    std::unique_lock lock(mutex_);
    for (double seconds = first;; seconds = period) {
      if (wake_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return over_; })) return;
      lock.unlock();
      act();
      if (period == 0) return;
      lock.lock();
    }
  });
}

Timer::~Timer() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

ExitTimer::ExitTimer(double seconds, int exit_code, std::function<void()> last_words)
    : timer_("exit timer", seconds, 0, [exit_code, words = std::move(last_words)] {
        if (words) {
          const ExitTimer for_the_words(1, exit_code);
          words();
        }
        std::_Exit(exit_code);
      }) {}

}  // namespace tokamak

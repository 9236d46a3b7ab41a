#include "base/service_thread.h"

#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <utility>

namespace tokamak {

std::thread start_service_thread(std::function<void()> body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(body));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

ExitTimer::ExitTimer(double seconds, int exit_code, std::function<void()> last_words) {
  thread_ = start_service_thread([this, seconds, exit_code, words = std::move(last_words)] {
    std::unique_lock lock(mutex_);
    if (wake_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return over_; })) return;
    lock.unlock();
    if (words) {
      const ExitTimer for_the_words(1, exit_code);
      words();
    }
    std::_Exit(exit_code);
  });
}

ExitTimer::~ExitTimer() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

}  // namespace tokamak

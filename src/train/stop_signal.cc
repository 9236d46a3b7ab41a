#include "train/stop_signal.h"

#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>

#include "base/error.h"

namespace tokamak {

namespace {

// A handler has no object to reach; it may run on any thread.
std::atomic<int> received_signal{0};
std::atomic<int64_t> first_at{0};     // milliseconds
std::atomic<int64_t> deadline_in{0};  // milliseconds from the first signal; 0: none
constexpr int64_t kNewWish = 1000;    // least milliseconds between two separate Ctrl-C
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free);

int64_t milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{1000} * now.tv_sec + now.tv_nsec / 1000000;
}

// Called by signal handlers, so it uses no lock and no buffer.
[[noreturn]] void end_now(const char* why, int code) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, why, std::strlen(why));
  ::_exit(code);
}

void on_deadline(int) {
  end_now("resilience.stop_deadline is over: ending without what is not saved\n", static_cast<int>(Kind::kComm));
}

void start_deadline() {
  const int64_t left = deadline_in;
  const itimerval timer = {{0, 0}, {left / 1000, left % 1000 * 1000}};
  if (left > 0) setitimer(ITIMER_REAL, &timer, nullptr);
}

void on_signal(int number) {
  const int error = errno;
  int none = 0;
  if (received_signal.compare_exchange_strong(none, number)) {
    first_at = milliseconds();
    start_deadline();
  } else if (number == SIGINT && milliseconds() - first_at >= kNewWish) {
    end_now("SIGINT again: ending without what is not saved\n", 128 + SIGINT);
  }
  errno = error;
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;  // reads and writes in progress go on
  sigaction(signal, &action, nullptr);
}

}  // namespace

StopSignal::StopSignal() {
  received_signal = 0;
  deadline_in = 0;
  std::signal(SIGPIPE, SIG_IGN);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) handle(kSignals[i], on_signal);  // nohup ignores SIGHUP
  }
}

StopSignal::~StopSignal() {
  const itimerval off{};
  setitimer(ITIMER_REAL, &off, nullptr);
  // Otherwise a signal between here and the end of the process would turn its exit code 75 into 143.
  if (received() != 0) return;
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

void StopSignal::set_deadline(Duration deadline) {
  handle(SIGALRM, on_deadline);
  deadline_in = std::llround(deadline.seconds * 1000);
  if (received() != 0) start_deadline();
}

int StopSignal::received() const { return received_signal; }

}  // namespace tokamak

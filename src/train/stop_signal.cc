#include "train/stop_signal.h"

#include <atomic>

namespace tokamak {

namespace {

// A handler has no object to reach; it may run on any thread.
std::atomic<int> received{0};
static_assert(std::atomic<int>::is_always_lock_free);

void on_signal(int number) { received = number; }

}  // namespace

StopSignal::StopSignal() {
  received = 0;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler == SIG_IGN) continue;  // as nohup asks
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;  // reads and writes in progress go on
    sigaction(kSignals[i], &action, nullptr);
  }
}

StopSignal::~StopSignal() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

int StopSignal::agreed(Comm& comm) const { return static_cast<int>(comm.max(received)); }

}  // namespace tokamak

#include "train/stop_signal.h"

#include <csignal>

namespace tokamak {

namespace {

// A signal handler can reach nothing but a global of this type.
volatile std::sig_atomic_t received = 0;

void on_signal(int number) { received = number; }

constexpr int kSignals[] = {SIGTERM, SIGINT, SIGUSR1};

}  // namespace

StopSignal::StopSignal() {
  received = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;  // reads and writes in progress go on
  for (const int number : kSignals) sigaction(number, &action, nullptr);
}

StopSignal::~StopSignal() {
  for (const int number : kSignals) std::signal(number, SIG_DFL);
}

int StopSignal::agreed(Comm& comm) const { return static_cast<int>(comm.max(received)); }

}  // namespace tokamak

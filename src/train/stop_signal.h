// Requests to stop: SIGTERM, SIGINT, SIGUSR1 or SIGHUP on any rank. Slurm sends one before a time limit or a
// preemption, a closing terminal sends SIGHUP. The run saves and exits with 75. All ranks see the request at the end of
// the same step, or of the same micro-batch of an evaluation. The same signal again changes nothing, since schedulers
// repeat signals. But a second SIGINT, at least a second after the first, ends the process at once: the user does not
// want to wait.
#pragma once

#include <signal.h>

#include <array>

#include "base/fields.h"

namespace tokamak {

// Thrown on all ranks when a validation or an evaluation ends early because the run must stop.
struct StopRequested {};

class StopSignal {
 public:
  // Also ignores SIGPIPE: a run must survive a reader of its log that ends first (`| head`, a `tee` ended by Ctrl-C).
  StopSignal();   // catches the signals from here on, but for those that the process was told to ignore
  ~StopSignal();  // restores the handlers, unless a signal has come: then the process is ending
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // The process ends at once, with exit code 6, when this time has passed since the first signal.
  void set_deadline(Duration deadline);

  int received() const;  // its number, or 0

 private:
  static constexpr std::array<int, 4> kSignals = {SIGTERM, SIGINT, SIGUSR1, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_;
};

}  // namespace tokamak

// "Please stop": SIGTERM, SIGINT, SIGUSR1 or SIGHUP on any rank. Slurm sends one before a time limit or a preemption, a
// terminal that is closed sends SIGHUP; the run saves and exits with 75. All ranks learn of it at the end of the same step, or of the same micro-batch of a validation
// or an evaluation. The same signal again changes nothing, as schedulers repeat themselves; but a second SIGINT, a
// second or more after the first, is a user who does not want to wait: the process ends at once.
#pragma once

#include <signal.h>

#include <array>

#include "base/fields.h"
#include "comm/comm.h"

namespace tokamak {

// Thrown on all ranks alike where a validation or an evaluation ends because the run is to stop.
struct StopRequested {};

class StopSignal {
 public:
  // Also ignores SIGPIPE from here on: a log that nobody reads any more (`| head`, a `tee` that Ctrl-C has ended) is no
  // reason to lose a run.
  StopSignal();   // catches the signals from here on, but for those that the process was told to ignore
  ~StopSignal();  // does with them what was done before; where one has come the process is ending, and all stays
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // From the first signal on the process has so long: then it ends at once, with exit code 6, whatever it is doing.
  void set_deadline(Duration deadline);

  int received() const;  // its number, or 0
  // The number of the signal that some rank has received, or 0. Collective; every rank gets the same answer.
  int agreed(Comm& comm) const;

 private:
  static constexpr std::array<int, 4> kSignals = {SIGTERM, SIGINT, SIGUSR1, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_;
};

}  // namespace tokamak

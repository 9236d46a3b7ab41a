// "Please stop": SIGTERM, SIGINT or SIGUSR1 on any rank. Slurm sends one before a time limit or a preemption; the run
// saves and exits with 75. All ranks learn of it at the end of the same step.
#pragma once

#include <signal.h>

#include <array>

#include "comm/comm.h"

namespace tokamak {

class StopSignal {
 public:
  StopSignal();   // catches the signals from here on, but for those that the process was told to ignore
  ~StopSignal();  // whatever was done with them before is done again
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // The number of the signal that some rank has received, or 0. Collective; every rank gets the same answer.
  int agreed(Comm& comm) const;

 private:
  static constexpr std::array<int, 3> kSignals = {SIGTERM, SIGINT, SIGUSR1};
  std::array<struct sigaction, 3> before_;
};

}  // namespace tokamak

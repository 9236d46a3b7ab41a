// Ranks that are threads of one process, with the sums of host_comm.h. Tests of several ranks run in one process, in
// milliseconds, and under the sanitizers. A run's ranks are processes.
#pragma once

#include <functional>

#include "comm/comm.h"

namespace tokamak {

// Runs body(comm) on `ranks` threads, each with its rank's Comm, and returns when all have ended. If a rank ends while
// others wait for it in a collective, by an exception or by returning early, their collectives throw. The same happens
// if ranks call different collectives. Then throws the first exception.
void run_on_threads(int ranks, const std::function<void(Comm&)>& body);

}  // namespace tokamak

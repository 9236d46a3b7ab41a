// Ranks that are threads of one process, over the same sums as MPI's (host_comm.h): everything that has several ranks
// can be tested in one process, in milliseconds, and under the sanitizers. A run's ranks are processes.
#pragma once

#include <functional>

#include "comm/comm.h"

namespace tokamak {

// Runs body(comm) on `ranks` threads, each with its rank's Comm, and returns when all have ended. A rank that ends
// while others wait for it in a collective, by an exception or by returning too early, ends those too: their
// collectives throw. So do ranks that call different collectives. Then throws what the first of them threw.
void run_on_threads(int ranks, const std::function<void(Comm&)>& body);

}  // namespace tokamak

// What the ranks make of silent data corruption that some of them have found: one verdict, which names ranks and hosts.
#pragma once

#include <string>
#include <vector>

#include "comm/comm.h"

namespace tokamak {

struct Corruption {
  std::string what;                // "rank 1 (node7): the loss; layer.2"; "" where there is none
  std::vector<int> ranks;          // where it happened
  std::vector<std::string> hosts;  // theirs, each once
};

// Collective. `own`: what went wrong on this rank; `received`: what went wrong between the ranks, as seen by this one,
// which counts where no rank has found anything of its own: an error of one rank reaches what all receive.
Corruption find_corruption(Comm& comm, const std::string& own, const std::string& received = "");

}  // namespace tokamak

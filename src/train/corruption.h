// One verdict of all ranks on silent data corruption that some of them have found. It names ranks and hosts.
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

// Collective. `own` names parts that this rank computed wrong, `received` parts of sums over the ranks. `received`
// counts only if no rank names parts of its own: an error of one rank is in the sums of all.
Corruption find_corruption(Comm& comm, const std::string& own, const std::string& received = "");

}  // namespace tokamak

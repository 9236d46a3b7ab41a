// The first record of a start: its identity and its hosts, for readers of the records of all starts (report/).
#pragma once

#include <functional>
#include <string>

#include "comm/comm.h"
#include "monitor/record.h"

namespace tokamak {

struct StartFacts {
  int64_t exec_time = 0;  // of the process, in milliseconds since 1970
  std::string incarnation;
  int ranks = 1;
  std::string hosts;
  std::string program;  // "tokamak 0.1.0, commit 3ffeb6390c61"
  std::string command;  // as a shell would take it
};

// Adds the system of rank 0, and the job and its restart by the environment: TOKAMAK_JOB and TOKAMAK_ATTEMPT of scripts
// that start a run again, and Slurm's SLURM_JOB_ID and SLURM_RESTART_COUNT. `variable` is as std::getenv.
MetricRecord start_record(const StartFacts& facts, const std::function<const char*(const char* name)>& variable);

// Collective: "n01,n02", each host once, in the order of the ranks.
std::string all_hosts(Comm& comm);

}  // namespace tokamak

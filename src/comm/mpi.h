// The interface to MPI; mpi.cc is the only file that includes its header.
#pragma once

#include <memory>

#include "comm/comm.h"

namespace tokamak {

struct MpiWorld {
  std::unique_ptr<Comm> comm;
  int local_rank = 0;
  int local_size = 1;
};

MpiWorld start_mpi();  // once per process
void end_mpi();        // after all Comms are gone; collective

// Makes MPI end every process of the run, if there are no control connections (watch.h).
[[noreturn]] void abort_mpi(int exit_code);

}  // namespace tokamak

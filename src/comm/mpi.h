// The seam to MPI (mpi.cc is the only file that includes it).
#pragma once

#include <memory>

#include "comm/comm.h"

namespace tokamak {

struct MpiWorld {
  std::unique_ptr<Comm> comm;
  int local_rank = 0;
  int local_size = 1;
};

MpiWorld start_mpi();  // once in a process
void end_mpi();        // after all Comms are gone; collective

// Asks MPI to end every process of the run, where no control connections can (watch.h).
[[noreturn]] void abort_mpi(int exit_code);

}  // namespace tokamak

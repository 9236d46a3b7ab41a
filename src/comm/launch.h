// How this process was started: alone or as one of several ranks, and how the ranks find each other. Reads only
// environment variables.
#pragma once

#include <functional>
#include <string>

namespace tokamak {

enum class Launcher {
  kNone,  // a single process
  kMpi,   // mpirun of Open MPI, or srun --mpi=pmix: MPI knows rank and size
  kTcp,   // RANK and WORLD_SIZE, or srun without PMIx: the ranks meet at `address`:`port`
};

struct ProcessLaunch {
  Launcher launcher = Launcher::kNone;
  int rank = 0;
  int size = 1;
  int local_rank = -1;  // among the ranks of this node; -1: unknown
  int local_size = -1;
  std::string address;  // rank 0's
  int port = 0;
  std::string job;     // name of these ranks' job; ranks of another job at the same port are turned away
  std::string secret;  // TOKAMAK_SECRET, which ranks prove to each other; "": none
};

using Variables = std::function<const char*(const char* name)>;  // as std::getenv

// Error(kConfig) if variables are incomplete or contradictory, or if a launcher started several of us that cannot find
// each other. It names variable and value, but never the secret's value.
ProcessLaunch find_launch(const Variables& variables);

// The first host of Slurm's list: "n[01-03,7],m4" -> "n01".
std::string first_host(const std::string& nodes);

}  // namespace tokamak

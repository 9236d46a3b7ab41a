// How this process was started: alone or as one of several ranks, and through what the ranks find each other. Read from
// environment variables alone; nothing is opened or asked.
#pragma once

#include <functional>
#include <string>

namespace tokamak {

enum class Launcher {
  kNone,  // one process by itself
  kMpi,   // mpirun of Open MPI, or srun --mpi=pmix: MPI knows the rest
  kTcp,   // RANK and WORLD_SIZE, or srun without PMIx: the ranks meet at `address`:`port`
};

struct Launch {
  Launcher launcher = Launcher::kNone;
  int rank = 0;
  int size = 1;
  int local_rank = -1;  // among the ranks of this node; -1: not said
  int local_size = -1;
  std::string address;  // of rank 0
  int port = 0;
  std::string job;     // whose ranks these are; ranks of another job that come to the same port are turned away
  std::string secret;  // TOKAMAK_SECRET, which ranks prove to each other that they know; "": none
};

using Variables = std::function<const char*(const char* name)>;  // as std::getenv

// Error(kConfig) naming variable and value (not the secret's) where they are set by halves or contradict each other, or where a launcher
// started several of us that could not find each other.
Launch find_launch(const Variables& variables);

// The first of Slurm's list of hosts: "n[01-03,7],m4" -> "n01".
std::string first_host(const std::string& nodes);

}  // namespace tokamak

// The control connections of ranks whose tensors travel by MPI: TCP beside it, for MPI gives its threads no way to hear
// of a rank's death.
#pragma once

#include <optional>

#include "comm/comm.h"
#include "comm/rendezvous.h"

namespace tokamak {

// Rank 0's addresses and a random token go round through `comm`; who cannot prove that it knows the token, and the
// `secret` of all ranks, is turned away. On all ranks or none: a warning says why. SharedError(kConfig) where the ranks'
// secrets differ. Collective, once.
std::optional<ControlPeers> connect_control(Comm& comm, const std::string& secret);

}  // namespace tokamak

// TCP control connections for ranks whose tensors travel by MPI, since MPI does not report a rank's death to threads.
#pragma once

#include <optional>

#include "comm/comm.h"
#include "comm/rendezvous.h"

namespace tokamak {

// Sends rank 0's addresses and a random token through `comm`, and turns away peers that cannot prove the token and the
// `secret`. nullopt on all ranks, with a warning, if that fails. SharedError(kConfig) if the ranks' secrets differ.
// Collective, once.
std::optional<ControlPeers> connect_control(Comm& comm, const std::string& secret);

}  // namespace tokamak

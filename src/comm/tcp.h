// Ranks that talk over TCP: for launchers that offer no PMIx, and where there is no MPI. Host memory only.
#pragma once

#include <memory>

#include "comm/comm.h"
#include "comm/rendezvous.h"

namespace tokamak {

// Collective, and so is the end of what it returns; groups split from it must be gone by then. Error(kComm).
std::unique_ptr<Comm> make_tcp_comm(const RendezvousOptions& options);

}  // namespace tokamak

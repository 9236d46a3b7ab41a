// Ranks that talk over TCP: for launchers that offer no PMIx, and where there is no MPI. Host memory only.
#pragma once

#include <memory>

#include "comm/comm.h"
#include "comm/rendezvous.h"

namespace tokamak {

// `data` and `hosts` as in Peers. Collective; groups split from it must be gone before it.
std::unique_ptr<Comm> make_tcp_comm(int rank, LaneSockets data, std::vector<std::string> hosts);

}  // namespace tokamak

// Ranks that talk over TCP: for launchers that offer no PMIx, and where there is no MPI. Host memory only.
#pragma once

#include <functional>
#include <memory>

#include "comm/comm.h"
#include "comm/rendezvous.h"

namespace tokamak {

// `data` and `hosts` as in Peers. Collective; groups split from it must be gone before it. Error(kComm) naming a rank that
// does not take part within a minute, Error(kStopped) where `interrupted` turns true before that; later, a watchdog is
// there to judge.
std::unique_ptr<Comm> make_tcp_comm(int rank, LaneSockets data, std::vector<std::string> hosts,
                                    const std::function<bool()>& interrupted = {});

}  // namespace tokamak

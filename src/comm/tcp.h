// A Comm over TCP, for launchers without PMIx and machines without MPI. Host memory only.
#pragma once

#include <functional>
#include <memory>

#include "comm/comm.h"
#include "comm/rendezvous.h"

namespace tokamak {

// `data` and `hosts` as in Peers. Groups split from it are destroyed first. Collective: Error(kComm) naming a rank that
// does not call this within a minute, Error(kStopped) if `interrupted` returns true meanwhile. Later waits have no
// limit here.
std::unique_ptr<Comm> make_tcp_comm(int rank, LaneSockets data, std::vector<std::string> hosts,
                                    const std::function<bool()>& interrupted = {});

}  // namespace tokamak

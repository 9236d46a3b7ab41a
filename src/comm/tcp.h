// A Comm over TCP, for launchers without PMIx and machines without MPI. Host memory only.
#pragma once

#include <functional>
#include <memory>

#include "comm/comm.h"
#include "comm/rendezvous.h"

namespace tokamak {

// `data` and `hosts` as in Peers. Collective; groups split from it are destroyed first. Error(kComm) naming a rank that
// does not take part within a minute, Error(kStopped) if `interrupted` returns true before that; later a watchdog
// judges.
std::unique_ptr<Comm> make_tcp_comm(int rank, LaneSockets data, std::vector<std::string> hosts,
                                    const std::function<bool()>& interrupted = {});

}  // namespace tokamak

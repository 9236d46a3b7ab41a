// Connects ranks that know only rank 0's address: all with rank 0 (control), and each with each in every lane (data).
//
// Every rank sends rank 0 a hello (hello.h) with a port of its own. Rank 0 acknowledges expected ranks, waits for all,
// then sends each the list of hosts, addresses and ports. Every rank now connects to those below it in the same way.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "comm/lane.h"
#include "comm/socket.h"

namespace tokamak {

struct RendezvousOptions {
  int rank = 0;
  int size = 1;
  std::vector<std::string> addresses;  // of rank 0; the first that answers is used
  int port = 0;                        // at which rank 0 listens
  std::string job;                     // the same on all ranks; those of another job are turned away
  std::string secret;                  // which ranks prove to each other; "": none
  bool one_host = false;               // all ranks are on this host: no port is opened to others
  double timeout_seconds = 0;          // for all to join
  double silent_seconds = 10;          // of a wait, before it is logged
  std::function<bool()> interrupted;   // polled while waiting; true ends it
};

// Indexed by rank. A rank's own sockets are empty.
struct ControlPeers {
  std::vector<Socket> sockets;     // rank 0: to every rank; another rank: only to rank 0
  std::vector<std::string> hosts;  // printable
};
using LaneSockets = std::array<std::vector<Socket>, kLanes>;  // by lane and rank
struct Peers {
  LaneSockets data;
  ControlPeers control;
};

// Collective. Error(kComm) on every rank that has joined, if not all join in time. Also on a rank that is refused: it
// has another version, size or secret, or a rank that is taken. Error(kStopped) on a rank that is interrupted, within a
// fraction of a second. Other peers cost at most their own connection.
Peers meet(const RendezvousOptions& options);

// Only the connections with rank 0, which listens already: `listeners` are rank 0's, empty elsewhere. Collective, as
// above.
ControlPeers meet_rank_zero(const RendezvousOptions& options, std::vector<Socket> listeners);

}  // namespace tokamak

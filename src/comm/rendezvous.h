// Connects ranks that know only rank 0's address: each to rank 0 (control), and each pair once per lane (data).
//
// Every rank sends rank 0 a hello (hello.h) with a port of its own. Rank 0 acknowledges expected ranks, waits for all,
// then sends each the list of hosts, addresses and ports. Then every rank connects so to each rank of lower number.
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
  std::string job;                     // the same on all ranks; ranks of another job are turned away
  std::string secret;                  // which ranks prove to each other; "": none
  bool one_host = false;               // all ranks are on this host: no port is opened to others
  double timeout_seconds = 0;          // for all to join
  double silent_seconds = 10;          // of waiting, after which the log says so
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

// Collective. Error(kComm) on every rank that has joined, if not all join in time. A refused rank gets it, too: its
// version, size or secret differs, or another process has its number. Error(kStopped) on a rank that is interrupted,
// within a fraction of a second. A stranger can spoil only its own connection.
Peers meet(const RendezvousOptions& options);

// Makes only the connections to rank 0, which listens already: `listeners` are rank 0's, empty elsewhere. Collective;
// errors as of meet().
ControlPeers meet_rank_zero(const RendezvousOptions& options, std::vector<Socket> listeners);

}  // namespace tokamak

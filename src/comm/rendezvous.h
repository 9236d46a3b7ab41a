// How ranks that know rank 0's address, and nothing else of each other, come to be connected: all with rank 0 (control),
// and each with each, in every lane (data).
//
// Every rank opens a port of its own, then goes to rank 0 with a hello: version, kind, size, rank, port, host, job.
// Rank 0 tells one of its own that it is expected, waits for all, then sends everybody the list of (address, port); now
// every rank connects to those below it.
// Words are frames: "TOKAMAK1", a 32-bit length, and fields with a zero byte between them.
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
  std::vector<std::string> addresses;  // of rank 0; of several, the first where it answers
  int port = 0;                        // where rank 0 listens
  std::string job;                     // the same on all ranks; those of another job are turned away
  double timeout_seconds = 0;          // for all to come
  std::function<bool()> interrupted;   // asked while waiting; true ends it
};

// Index: the rank. A rank's own sockets are empty.
struct ControlPeers {
  std::vector<Socket> sockets;     // rank 0: to every rank; another rank: to rank 0 alone
  std::vector<std::string> hosts;  // their names, for messages
};
using LaneSockets = std::array<std::vector<Socket>, kLanes>;  // by lane and rank
struct Peers {
  LaneSockets data;
  ControlPeers control;
};

// Collective. Error(kComm) on every rank that has come, if not all come in time, or if two say different things.
// Error(kStopped) on a rank that is interrupted: within a fraction of a second, or 10 s where rank 0's host is silent.
Peers meet(const RendezvousOptions& options);

// The connections with rank 0 alone, which listens already: `listener` is rank 0's, another's is empty. Collective, as
// above.
ControlPeers meet_rank_zero(const RendezvousOptions& options, Socket listener);

}  // namespace tokamak

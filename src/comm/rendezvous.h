// How ranks that know rank 0's address, and nothing else of each other, come to be connected, each with each.
//
// Every rank opens a port of its own, then goes to rank 0 with a hello: version, kind, size, rank, port, host, job.
// Rank 0 waits for all, then sends everybody the list of (address, port); now every rank connects to those below it.
// Words are frames: "TOKAMAK1", a 32-bit length, and fields with a zero byte between them.
#pragma once

#include <string>
#include <vector>

#include "comm/socket.h"

namespace tokamak {

struct RendezvousOptions {
  int rank = 0;
  int size = 1;
  std::string address;         // of rank 0
  int port = 0;                // where rank 0 listens
  std::string job;             // the same on all ranks; those of another job are turned away
  double timeout_seconds = 0;  // for all to come
};

// Index: the rank. A rank's own sockets are empty.
struct Peers {
  std::vector<Socket> data;
  std::vector<Socket> control;     // rank 0: to every rank; another rank: to rank 0 alone
  std::vector<std::string> hosts;  // their names, for messages
};

// Collective. Error(kComm) on every rank that has come, if not all come in time, or if two say different things.
Peers meet(const RendezvousOptions& options);

}  // namespace tokamak

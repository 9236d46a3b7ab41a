// How ranks that know rank 0's address, and nothing else of each other, come to be connected: all with rank 0 (control),
// and each with each, in every lane (data).
//
// Every rank goes to rank 0 with a hello (hello.h), which names a port of its own. Rank 0 tells one that is waited for
// that it is expected, waits for all, then sends everybody the list of hosts, addresses and ports; now every rank connects
// to those below it, by the same words.
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
  std::string secret;                  // which all ranks know, and prove to each other; "": none
  bool one_host = false;               // all ranks are on this host: no port needs to be open to others
  double timeout_seconds = 0;          // for all to come
  double silent_seconds = 10;          // of a wait, before the log says what for
  std::function<bool()> interrupted;   // asked while waiting; true ends it
};

// Index: the rank. A rank's own sockets are empty.
struct ControlPeers {
  std::vector<Socket> sockets;     // rank 0: to every rank; another rank: to rank 0 alone
  std::vector<std::string> hosts;  // their names, fit to be printed
};
using LaneSockets = std::array<std::vector<Socket>, kLanes>;  // by lane and rank
struct Peers {
  LaneSockets data;
  ControlPeers control;
};

// Collective. Error(kComm) on every rank that has come, if not all come in time, and on a rank that is turned away: of
// another version, size or secret, or a second one of its number. Error(kStopped) on a rank that is interrupted, within
// a fraction of a second. Whoever else connects costs at most its own connection.
Peers meet(const RendezvousOptions& options);

// The connections with rank 0 alone, which listens already: `listeners` are rank 0's, another has none. Collective, as
// above.
ControlPeers meet_rank_zero(const RendezvousOptions& options, std::vector<Socket> listeners);

}  // namespace tokamak

// Peers that have connected to a port of ours and have not yet identified themselves. All are served concurrently, each
// with its own deadline and size limit, so that strangers delay no rank. A stranger (health check, port scan, another
// program, a rank of another job or without our secret) is answered, logged in one line and dropped.
#pragma once

#include <functional>
#include <list>
#include <string>
#include <vector>

#include "comm/hello.h"
#include "comm/socket.h"

namespace tokamak {

struct GuestRules {
  std::string self;    // the listener, in messages: "rank 0 at n1:29500"
  std::string job;     // ranks of other jobs are turned away
  std::string secret;  // "": none is required
  // Why a rank may not join that has our version, job and secret, as words after "rank 3 on n2 "; "": it may.
  std::function<std::string(const Hello&)> objection;
  std::function<void(const Hello&, Socket)> welcome;  // called for an expected rank; takes over its connection
  double patience = 5;                                // seconds from connecting to the last message
};

class Guests {
 public:
  Guests(std::vector<Socket> listeners, GuestRules rules);

  // Accepts and serves all that are ready, calling objection and welcome; never waits.
  void serve();

  // When one of these is readable, serve() has work.
  std::vector<const Socket*> sockets() const;

  // The ranks of this job that were turned away, and why, for an error that names missing ranks; or "".
  const std::string& turned_away() const { return turned_away_; }

 private:
  struct Guest {
    Socket socket;
    Deadline deadline;
    FrameReader frame;
    std::optional<Hello> hello;  // set once it was sent a challenge
    std::string random;
  };

  void accept_all(const Socket& listener);
  void make_room();
  bool hear(Guest& guest);  // true: the guest is finished
  bool introduced(Guest& guest, const Words& words);
  bool welcomed(Guest& guest, const Hello& hello);
  void turn_away(const Guest& guest, const std::string& who, const std::string& reason);
  void turn_away_rank(const Guest& guest, const Hello& hello, const std::string& finding, const std::string& reason);

  std::vector<Socket> listeners_;
  const GuestRules rules_;
  std::list<Guest> guests_;  // the oldest first
  Deadline accept_from_now_on_;
  std::string turned_away_;
  int logged_ = 0;
};

}  // namespace tokamak

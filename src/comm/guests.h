// Whoever connects to a port of ours, until it has said who it is. All are heard at once, each within its own deadline
// and limit of size, so that strangers delay no rank. A stranger is answered, logged in one line, and forgotten: a health
// check, a port scan, another program, a rank of another job or without our secret.
#pragma once

#include <functional>
#include <list>
#include <string>
#include <vector>

#include "comm/hello.h"
#include "comm/socket.h"

namespace tokamak {

struct GuestRules {
  std::string self;    // what listens, in messages: "rank 0 at n1:29500"
  std::string job;     // others are turned away
  std::string secret;  // "": none is asked for
  // What is wrong with a rank of this version and job, which knows the secret, after "rank 3 on n2 "; "": nothing.
  std::function<std::string(const Hello&)> objection;
  std::function<void(const Hello&, Socket)> welcome;  // it has been told that it is expected
  double patience = 5;  // seconds from connecting to the last word; who says less is no rank
};

class Guests {
 public:
  Guests(std::vector<Socket> listeners, GuestRules rules);

  // Accepts and hears all who are ready, calling objection and welcome; waits for nobody.
  void serve();

  // Those of which one has something for serve() when it can be read.
  std::vector<const Socket*> sockets() const;

  // Ranks of ours by their own words that were turned away, and why: for an error that says who is missing. Or "".
  const std::string& turned_away() const { return turned_away_; }

 private:
  struct Guest {
    Socket socket;
    Deadline deadline;
    FrameReader frame;
    std::optional<Hello> hello;  // it has been challenged
    std::string random;
  };

  void accept_all(const Socket& listener);
  void make_room();
  bool hear(Guest& guest);  // whether it is done with
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

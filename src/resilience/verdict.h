// Whether a run hangs, and which ranks the others wait for: a function of the last heartbeats and their age, without
// clock or connection.
#pragma once

#include <string>
#include <vector>

#include "resilience/heartbeat.h"

namespace tokamak {

struct RankView {
  std::string name;  // "rank 3 (on n2)"
  std::string host;
  Heartbeat last;
  double heard_ago = 0;  // seconds since its last heartbeat; 0 for this rank itself
  bool lost = false;     // its connection has timed out
  bool left = false;     // it has ended in good order
  bool hidden = false;   // this process hears nothing of it: only rank 0 hears from all

  bool counts() const { return !left && !hidden; }
  double idle() const { return last.idle + heard_ago; }
  std::string who() const;  // "rank 3 (on n2), pid 7"
};

struct Verdict {
  bool hangs = false;
  double limit = 0;           // seconds: the longest limit of a heard rank's phase
  size_t limit_of = 0;        // the rank whose phase has this limit
  std::vector<int> silent;    // ranks without heartbeats: stopped, or their host is cut off
  std::vector<int> culprits;  // ranks that the others wait for; empty if none is behind
  std::string reason;         // the verdict in words, in one line
};

// `ranks` is by rank; `interval` is the time between heartbeats in seconds.
Verdict judge(const std::vector<RankView>& ranks, double interval);

// The ranks that the others wait for now, before any limit is over: "did not arrive: rank 3 (on n2), pid 7 (nothing
// heard for 12.0 s)". "" if none is silent or behind.
std::string missing_ranks(const std::vector<RankView>& ranks, double interval);

}  // namespace tokamak

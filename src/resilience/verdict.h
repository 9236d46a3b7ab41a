// Whether a run hangs, and which of its ranks the others wait for. A function of what the ranks last said and how long
// ago that was; no clock, no connection.
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
  bool left = false;     // in good order
  bool hidden = false;   // this process hears nothing of it: only rank 0 hears of all

  bool counts() const { return !left && !hidden; }
  double idle() const { return last.idle + heard_ago; }
};

struct Verdict {
  bool hangs = false;
  double limit = 0;           // seconds: the longest of the phases of ranks that are heard, and whose it is
  size_t limit_of = 0;        //
  std::vector<int> silent;    // ranks that say nothing: stopped, or their host is cut off
  std::vector<int> culprits;  // ranks that the others wait for; none where nobody is behind
  std::string reason;         // of all that, one line
};

// By rank. `interval`: seconds between heartbeats.
Verdict judge(const std::vector<RankView>& ranks, double interval);

// Whom the others wait for now, whether that is too long yet or not: "did not arrive: rank 3 (on n2), pid 7 (nothing heard
// of it for 12.0 s)"; "" where nobody is silent or behind.
std::string missing_ranks(const std::vector<RankView>& ranks, double interval);

}  // namespace tokamak

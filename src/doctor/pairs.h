// Latency and bandwidth between each two hosts, or between each two ranks of a single host. They name a slow link or
// host before all ranks wait for it. A round-robin tournament: all pairs of a round measure at once, n hosts take n - 1
// rounds.
#pragma once

#include "backend/device.h"
#include "doctor/check.h"

namespace tokamak::doctor {

struct PairsOptions {
  int64_t bytes = 0;    // in each direction; 0: by the device
  double seconds = 10;  // no round begins after that
};

CheckResult check_pairs(Comm& control, Comm& data, const RankHosts& peers, Device& device, const PairsOptions& options);

struct PairTime {
  int a = 0, b = 0;             // ranks
  double latency = 0;           // seconds
  double bytes_per_second = 0;  // in each direction
};

// Names the slowest pairs, and a host that is part of most of them.
void judge_pairs(CheckResult& result, const RankHosts& peers, std::vector<PairTime> pairs);

// The opponent of `player` in `round` of a tournament of `players`; the player itself if it pauses.
int opponent(int player, int round, int players);

}  // namespace tokamak::doctor

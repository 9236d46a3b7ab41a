// Latency and bandwidth between each two hosts (between each two ranks of a single host), so that a slow link or host
// is named before all ranks wait for it. All pairs of a round measure at once, as in a round-robin tournament: n hosts
// take n - 1 rounds.
#pragma once

#include "backend/device.h"
#include "doctor/check.h"

namespace tokamak::doctor {

struct PairsOptions {
  int64_t bytes = 0;    // that each sends the other; 0: by the device
  double seconds = 10;  // after which no further round begins
};

CheckResult check_pairs(Comm& control, Comm& data, const RankHosts& peers, Device& device, const PairsOptions& options);

struct PairTime {
  int a = 0, b = 0;             // ranks
  double latency = 0;           // seconds
  double bytes_per_second = 0;  // in each direction
};

// Names the slowest pairs, and the host that the slow ones have in common.
void judge_pairs(CheckResult& result, const RankHosts& peers, std::vector<PairTime> pairs);

// Who plays with `player` in `round` of a tournament of `players`; itself: nobody.
int opponent(int player, int round, int players);

}  // namespace tokamak::doctor

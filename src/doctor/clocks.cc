#include "doctor/clocks.h"

#include <cmath>
#include <cstring>

namespace tokamak::doctor {

namespace {

constexpr int kRoundTrips = 9;
constexpr double kMostSkew = 1.0;  // seconds

}  // namespace

// Rank 0 reads its clock after all have entered the barrier and before any has the broadcast: between two readings of
// this rank's own clock. The offset is known to half of their distance, as in NTP (RFC 5905, section 8).
CheckResult check_clocks(Comm& comm, const RankHosts& peers, const Clock& clock) {
  std::vector<double> offsets, distances;
  for (int i = 0; i < kRoundTrips; ++i) {
    const double before = clock();
    comm.barrier();
    double of_rank_zero = clock();
    std::string bytes(sizeof(double), '\0');
    std::memcpy(bytes.data(), &of_rank_zero, sizeof(double));
    comm.broadcast(bytes, 0);
    const double after = clock();
    std::memcpy(&of_rank_zero, bytes.data(), sizeof(double));
    offsets.push_back(0.5 * (before + after) - of_rank_zero);
    distances.push_back(after - before);
  }
  CheckResult result{.name = "clocks", .kind = Kind::kConfig};
  result.ranks = gather_facts(comm, [&] {
    Facts facts;
    facts.set("seconds_ahead_of_rank_0", comm.rank() == 0 ? 0.0 : median(offsets));
    facts.set("round_trip_seconds", median(distances));
    return facts;
  });
  double most = 0;
  for (const int rank : peers.first_ranks()) {
    const Facts& facts = result.ranks[static_cast<size_t>(rank)];
    const double ahead = facts.number("seconds_ahead_of_rank_0");
    most = std::max(most, std::abs(ahead));
    if (std::abs(ahead) <= kMostSkew) continue;
    result.warn(peers.host(rank), str(peers.host(rank), "'s clock is ", fixed(std::abs(ahead), 1), " s ",
                                      ahead > 0 ? "ahead of" : "behind", " rank 0's; synchronise it (chrony, ntpd)"));
  }
  result.value = str("within ", fixed(most * 1000, 1), " ms on ", peers.hosts().size(), " host(s)");
  return result;
}

}  // namespace tokamak::doctor

#include "resilience/verdict.h"

#include <algorithm>
#include <map>

#include "base/strings.h"

namespace tokamak {

namespace {

constexpr double kMissed = 3;  // heartbeats

std::string listed(const std::vector<RankView>& ranks, const std::vector<int>& which) {
  std::vector<std::string> names;
  for (const int r : which) {
    const RankView& rank = ranks[static_cast<size_t>(r)];
    names.push_back(str(rank.name, ", pid ", rank.last.pid));
  }
  constexpr size_t kMost = 8;
  const size_t more = names.size() > kMost ? names.size() - kMost : 0;
  names.resize(names.size() - more);
  return join(names, "; ") + (more > 0 ? str(" and ", more, " more") : "");
}

// "rank 0 (on a, pid 1); rank 2 ... in all_gather, phase step, step 7"
std::string waiting(const std::vector<RankView>& ranks, const std::vector<int>& culprits) {
  std::map<std::string, std::vector<int>> by_place;
  for (size_t r = 0; r < ranks.size(); ++r) {
    const auto rank = static_cast<int>(r);
    if (!ranks[r].counts() || std::find(culprits.begin(), culprits.end(), rank) != culprits.end()) continue;
    const Heartbeat& last = ranks[r].last;
    const char* const call = last.inside.data();
    by_place[str(*call == 0 ? "outside of any call" : str("in ", call), ", phase ", name_of(last.phase), ", step ",
                 last.step)]
        .push_back(rank);
  }
  std::vector<std::string> places;
  for (const auto& [place, who] : by_place) places.push_back(str(listed(ranks, who), " ", place));
  return join(places, "; ");
}

// Those that have begun fewer collectives than others: the others wait for them in the next.
std::vector<int> ranks_behind(const std::vector<RankView>& ranks) {
  int64_t most = 0;
  for (const RankView& rank : ranks) most = rank.counts() ? std::max(most, rank.last.collectives) : most;
  std::vector<int> behind;
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].counts() && ranks[r].last.collectives < most) behind.push_back(static_cast<int>(r));
  }
  return behind;
}

std::string reason_of(const std::vector<RankView>& ranks, const Verdict& verdict, double idle) {
  const std::string others = waiting(ranks, verdict.culprits);
  const std::string wait = others.empty() ? "" : str("; waiting: ", others);
  if (!verdict.silent.empty()) {
    return str("nothing was heard for ", fixed(idle, 1), " s of ", listed(ranks, verdict.silent),
               ": stopped, or the host is cut off", wait);
  }
  if (verdict.culprits.empty()) {
    return str("no rank has made progress for ", fixed(idle, 1), " s, and none is behind the others", wait);
  }
  const Heartbeat& last = ranks[static_cast<size_t>(verdict.culprits.front())].last;
  return str(listed(ranks, verdict.culprits), " did not arrive (", last.text(), ")", wait);
}

}  // namespace

std::string missing_ranks(const std::vector<RankView>& ranks, double interval) {
  std::vector<int> silent;
  double longest = 0;
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (!ranks[r].counts() || (!ranks[r].lost && ranks[r].heard_ago <= kMissed * interval)) continue;
    silent.push_back(static_cast<int>(r));
    longest = std::max(longest, ranks[r].heard_ago);
  }
  if (!silent.empty()) {
    return str("did not arrive: ", listed(ranks, silent), " (nothing heard for ", fixed(longest, 1), " s)");
  }
  const std::vector<int> behind = ranks_behind(ranks);
  if (behind.empty()) return "";
  return str("did not arrive: ", listed(ranks, behind), " (in it, while the others wait)");
}

Verdict judge(const std::vector<RankView>& ranks, double interval) {
  Verdict verdict;
  for (size_t r = 0; r < ranks.size(); ++r) {
    // What a silent rank said of its phase is old. But for rank 0: it has said the same to all, who are to agree.
    const bool stale = r != 0 && ranks[r].heard_ago > kMissed * interval;
    if (!ranks[r].counts() || stale || ranks[r].last.limit <= verdict.limit) continue;
    verdict.limit = ranks[r].last.limit;
    verdict.limit_of = r;
  }
  // What is silent for so long is meant when somebody hangs.
  const double silence = std::max(kMissed * interval, verdict.limit / 2);
  double shortest_idle = -1, longest_silence = 0;
  for (size_t r = 0; r < ranks.size(); ++r) {
    const RankView& rank = ranks[r];
    if (!rank.counts()) continue;
    if (shortest_idle < 0 || rank.idle() < shortest_idle) shortest_idle = rank.idle();
    longest_silence = std::max(longest_silence, rank.heard_ago);
    verdict.hangs = verdict.hangs || rank.lost || (verdict.limit > 0 && rank.heard_ago > verdict.limit);
    if (rank.lost || rank.heard_ago > silence) verdict.silent.push_back(static_cast<int>(r));
  }
  verdict.hangs = verdict.hangs || (verdict.limit > 0 && shortest_idle > verdict.limit);
  if (!verdict.hangs) return verdict;
  verdict.culprits = verdict.silent.empty() ? ranks_behind(ranks) : verdict.silent;
  const bool alone = ranks.size() == 1;
  if (alone) verdict.culprits = {0};
  verdict.reason = reason_of(ranks, verdict, verdict.silent.empty() ? shortest_idle : longest_silence);
  return verdict;
}

}  // namespace tokamak

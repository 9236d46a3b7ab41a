#include "resilience/verdict.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/strings.h"

namespace tokamak {

namespace {

constexpr double kMissed = 3;  // heartbeats

template <class Predicate>
std::vector<int> ranks_where(const std::vector<RankView>& ranks, const Predicate& holds) {
  std::vector<int> found;
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].counts() && holds(ranks[r])) found.push_back(static_cast<int>(r));
  }
  return found;
}

std::vector<int> ranks_silent_for(const std::vector<RankView>& ranks, double seconds) {
  return ranks_where(ranks, [&](const RankView& rank) { return rank.lost || rank.heard_ago > seconds; });
}

// The ranks that have begun fewer collectives than others. These wait for them in their next collective.
std::vector<int> ranks_behind(const std::vector<RankView>& ranks) {
  int64_t most = 0;
  for (const RankView& rank : ranks) most = rank.counts() ? std::max(most, rank.last.collectives) : most;
  return ranks_where(ranks, [&](const RankView& rank) { return rank.last.collectives < most; });
}

double longest_silence(const std::vector<RankView>& ranks) {
  double longest = 0;
  for (const RankView& rank : ranks) longest = rank.counts() ? std::max(longest, rank.heard_ago) : longest;
  return longest;
}

std::string listed(const std::vector<RankView>& ranks, const std::vector<int>& which) {
  constexpr size_t kMost = 8;
  std::vector<std::string> names;
  for (const int r : which) names.push_back(ranks[r].who());
  const size_t more = names.size() > kMost ? names.size() - kMost : 0;
  names.resize(names.size() - more);
  return join(names, "; ") + (more > 0 ? str(" and ", more, " more") : "");
}

// "; waiting: rank 0 (on a), pid 1; rank 2 ... in all_gather, phase step, step 7"
std::string waiting(const std::vector<RankView>& ranks, const std::vector<int>& culprits) {
  std::map<std::string, std::vector<int>> by_place;
  for (const int r : ranks_where(ranks, [](const RankView&) { return true; })) {
    if (!std::binary_search(culprits.begin(), culprits.end(), r)) by_place[ranks[r].last.place()].push_back(r);
  }
  std::vector<std::string> places;
  for (const auto& [place, who] : by_place) places.push_back(str(listed(ranks, who), " ", place));
  return places.empty() ? "" : "; waiting: " + join(places, "; ");
}

std::string reason_of(const std::vector<RankView>& ranks, const Verdict& verdict, double idle) {
  const std::string others = waiting(ranks, verdict.culprits);
  if (!verdict.silent.empty()) {
    return str("nothing was heard for ", fixed(longest_silence(ranks), 1), " s of ", listed(ranks, verdict.silent),
               ": stopped, or the host is cut off", others);
  }
  if (verdict.culprits.empty()) {
    return str("no rank has made progress for ", fixed(idle, 1), " s, and none is behind the others", others);
  }
  return str(listed(ranks, verdict.culprits), " did not arrive (", ranks[verdict.culprits.front()].last.text(), ")",
             others);
}

}  // namespace

std::string RankView::who() const { return str(name, ", pid ", last.pid); }

std::string missing_ranks(const std::vector<RankView>& ranks, double interval) {
  if (const std::vector<int> silent = ranks_silent_for(ranks, kMissed * interval); !silent.empty()) {
    return str("did not arrive: ", listed(ranks, silent), " (nothing heard for ", fixed(longest_silence(ranks), 1),
               " s)");
  }
  const std::vector<int> behind = ranks_behind(ranks);
  return behind.empty() ? "" : str("did not arrive: ", listed(ranks, behind), " (in it, while the others wait)");
}

Verdict judge(const std::vector<RankView>& ranks, double interval) {
  Verdict verdict;
  double idle = std::numeric_limits<double>::infinity();  // seconds without progress, the shortest of all ranks
  bool lost = false;
  for (size_t r = 0; r < ranks.size(); ++r) {
    const RankView& rank = ranks[r];
    if (!rank.counts()) continue;
    idle = std::min(idle, rank.idle());
    lost = lost || rank.lost;
    // The limit of a silent rank is outdated. Rank 0's limit is used even so: it has sent the same to all ranks, which
    // must agree.
    const bool outdated = r != 0 && rank.heard_ago > kMissed * interval;
    if (outdated || rank.last.limit <= verdict.limit) continue;
    verdict.limit = rank.last.limit;
    verdict.limit_of = r;
  }
  verdict.hangs = lost || (verdict.limit > 0 && std::max(idle, longest_silence(ranks)) > verdict.limit);
  verdict.silent = ranks_silent_for(ranks, std::max(kMissed * interval, verdict.limit / 2));
  if (!verdict.hangs) return verdict;
  verdict.culprits = verdict.silent.empty() ? ranks_behind(ranks) : verdict.silent;
  if (ranks.size() == 1) verdict.culprits = {0};
  verdict.reason = reason_of(ranks, verdict, idle);
  return verdict;
}

}  // namespace tokamak

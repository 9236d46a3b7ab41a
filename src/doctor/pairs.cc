// Latency and bandwidth between each two hosts (between each two ranks of a single host), to name a slow link or host.
// It is a round-robin tournament: the pairs of a round measure at the same time. n players take n - 1 rounds, n if odd.
#include <algorithm>
#include <map>
#include <numeric>

#include "base/clock.h"
#include "base/median.h"
#include "base/strings.h"
#include "doctor/checks.h"
#include "tensor/arena.h"

namespace tokamak::doctor {

namespace {

constexpr double kSlow = 0.5;  // of the median bandwidth
constexpr int64_t kPairHostBytes = int64_t{2} << 20, kPairGpuBytes = int64_t{32} << 20;
constexpr int kLatencyRounds = 20, kBandwidthRounds = 4;
constexpr double kLongTransfer = 0.25;  // seconds; one such transfer is enough
constexpr size_t kNamed = 3;
constexpr const char* kTo = "to ";

// An all-gather between two ranks: each sends its slice to the other.
class Transfer {
 public:
  Transfer(Comm& pair, Device& device, int64_t bytes) : pair_(pair), stream_(device.make_stream()) {
    MemoryPlan plan;
    const int64_t slice = bytes / size_of(DType::kF32);
    const auto part = plan.add("pairs/slice", DType::kF32, Shape{slice}, MemoryKind::kExchanged);
    const auto full = plan.add("pairs/full", DType::kF32, Shape{slice * pair.size()}, MemoryKind::kExchanged);
    arena_ = std::make_unique<Arena>(plan, device);
    slice_ = (*arena_)[part];
    full_ = (*arena_)[full];
  }

  double seconds() {
    const Stopwatch watch;
    pair_.all_gather(*stream_, slice_, full_);
    stream_->synchronize();
    return watch.seconds();
  }

 private:
  Comm& pair_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Arena> arena_;
  Tensor slice_, full_;
};

PairTime measure_pair(Comm& pair, Device& device, int64_t bytes) {
  const auto slower = [&](double seconds) {  // of the two ranks
    return 1e-9 * static_cast<double>(std::max<int64_t>(pair.max(static_cast<int64_t>(1e9 * seconds)), 1));
  };
  Transfer small(pair, device, Comm::kSliceAlignment), large(pair, device, bytes);
  small.seconds();  // the first call makes the connections
  std::vector<double> latencies;
  for (int i = 0; i < kLatencyRounds; ++i) latencies.push_back(small.seconds());
  double best = slower(large.seconds());
  for (int i = 1; i < kBandwidthRounds && best < kLongTransfer; ++i) best = std::min(best, slower(large.seconds()));
  return {.latency = slower(median_of(latencies)), .bytes_per_second = static_cast<double>(bytes) / best};
}

std::string text_of(const PairTime& pair, const std::function<std::string(int)>& name) {
  return str(name(pair.a), " - ", name(pair.b), " ", human_bytes(pair.bytes_per_second), "/s, ",
             fixed(pair.latency * 1e6, 0), " us");
}

}  // namespace

// The circle method: the last player stays and the others turn. With an odd number, the last one is absent.
int opponent(int player, int round, int players) {
  const int last = players + players % 2 - 1;
  const int turning = std::max(last, 1);
  const int turned = ((2 * round - player) % turning + turning) % turning;
  const int other = player == last ? round % turning : turned == player ? last : turned;
  return other < players ? other : player;
}

void judge_pairs(CheckResult& result, const RankHosts& peers, std::vector<PairTime> pairs) {
  if (pairs.empty()) return;
  std::sort(pairs.begin(), pairs.end(),
            [](const PairTime& x, const PairTime& y) { return x.bytes_per_second < y.bytes_per_second; });
  std::vector<double> rates, latencies;
  for (const PairTime& pair : pairs) {
    rates.push_back(pair.bytes_per_second);
    latencies.push_back(pair.latency);
  }
  const double median = median_of(rates);
  const bool hosts = peers.hosts().size() > 1;
  const auto name = [&](int rank) { return hosts ? peers.host(rank) : str("rank ", rank); };
  result.value = str(pairs.size(), " pair(s) of ", hosts ? "hosts" : "ranks", ", ", human_bytes(median), "/s and ",
                     fixed(median_of(latencies) * 1e6, 0), " us; slowest ", text_of(pairs.front(), name));
  std::map<int, size_t> slow_of;
  size_t slow = 0;
  for (const PairTime& pair : pairs) {
    if (pair.bytes_per_second >= kSlow * median) break;
    ++slow_of[pair.a];
    ++slow_of[pair.b];
    if (++slow > kNamed) continue;
    result.warn("", str("slow pair: ", text_of(pair, name), "; the median pair ", human_bytes(median), "/s"));
  }
  if (slow > kNamed) result.warn("", str(slow - kNamed, " more slow pair(s)"));
  for (const auto& [rank, count] : slow_of) {
    if (count < 2 || 2 * count <= slow) continue;
    result.warn(peers.host(rank), str(count, " of the ", slow, " slow pair(s) have ", name(rank), " in common"));
  }
}

CheckResult check_pairs(Comm& control, Comm& data, const RankHosts& peers, Device& device,
                        const PairsOptions& options) {
  CheckResult result{.name = "pairs", .kind = Kind::kComm};
  std::vector<int> players = peers.first_ranks();
  if (players.size() == 1) {
    players.resize(peers.size());
    std::iota(players.begin(), players.end(), 0);
  }
  const auto count = static_cast<int>(players.size());
  const auto player = static_cast<int>(std::find(players.begin(), players.end(), control.rank()) - players.begin());
  const bool plays = player < count;
  const int rounds = count + count % 2 - 1;
  const int64_t bytes = options.bytes > 0 ? options.bytes : device.uses_host_memory() ? kPairHostBytes : kPairGpuBytes;

  Facts measured;
  int played = 0;
  const std::unique_ptr<Comm> playing = data.split(plays ? 1 : 0);
  const Stopwatch watch;
  for (bool in_time = true; plays && in_time && played < rounds; ++played) {
    const int other = opponent(player, played, count);
    const std::unique_ptr<Comm> pair = playing->split(std::min(player, other));
    if (other != player) {
      const PairTime time = measure_pair(*pair, device, bytes);
      measured.set(str(kTo, players[other], ", seconds"), time.latency);
      measured.set(str(kTo, players[other], ", bytes_per_second"), time.bytes_per_second);
    }
    in_time = playing->max(static_cast<int64_t>(1e3 * watch.seconds())) <= static_cast<int64_t>(1e3 * options.seconds);
  }
  measured.set("rounds", played);
  measure(result, control, peers, [&](Facts& facts) { facts = measured; });
  std::vector<PairTime> pairs;
  for (const int a : players) {
    for (const int b : players) {
      const Facts& facts = result.ranks[a];
      const std::string rate = str(kTo, b, ", bytes_per_second");
      if (a < b && facts.has(rate)) pairs.push_back({a, b, facts.number(str(kTo, b, ", seconds")), facts.number(rate)});
    }
  }
  judge_pairs(result, peers, std::move(pairs));
  const std::string done = result.ranks.front().text("rounds");
  if (done != str(rounds)) {
    result.warn(
        "", str("not finished: ", done, " of ", rounds, " rounds were measured in ", fixed(options.seconds, 0), " s"));
  }
  return result;
}

}  // namespace tokamak::doctor

#include "eval/score_plan.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace tokamak {

namespace {

constexpr int64_t kTimesShared = 8;    // a bundle computes at least so many times what the next one computes again
constexpr int64_t kFewestBundles = 8;  // of a pack, for micro-batches that are not too small
constexpr int64_t kPacks = 64;         // for several ranks to share

// Runs that follow each other in one slot.
struct Bundle {
  std::vector<ScoredRun> runs;
  int64_t tokens = 0;
  double cost = 0;
};

std::span<const int32_t> inputs(const ScoredSequence& sequence) {
  return std::span(sequence.tokens).first(sequence.tokens.size() - 1);
}

int64_t common_beginning(std::span<const int32_t> a, std::span<const int32_t> b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

// Walks through the sequences and bundles what they compute. In lexicographic order, a sequence shares its longest
// beginning with the one before it.
class Bundler {
 public:
  Bundler(std::span<const ScoredSequence> sequences, const ScorePlanOptions& options)
      : sequences_(sequences), options_(options) {}

  void add(size_t index, int64_t shared) {
    const ScoredSequence& sequence = sequences_[index];
    const int64_t length = std::ssize(inputs(sequence)), context = length - sequence.scored;
    if (shared == 0 || bundles_.back().tokens >= kTimesShared * shared || !has_room(context, shared, sequence.scored)) {
      bundles_.emplace_back();
      shared = 0;
    }
    Bundle& bundle = bundles_.back();
    path_.resize(static_cast<size_t>(shared));
    if (shared < length) {
      path_.resize(static_cast<size_t>(length), bundle.runs.size());
      bundle.runs.push_back({index, shared, length});
      bundle.tokens += length - shared;
      const double attended = double(shared + length + 1) / 2;
      bundle.cost += options_.token_cost(attended) * double(length - shared);
    }
    for (int64_t from = context, to = from; from < length; from = to) {
      while (to < length && path_[to] == path_[from]) ++to;
      ScoredRun& run = bundle.runs[path_[from]];
      run.targets.push_back({index, from, to});
      run.target_count += to - from;
    }
  }

  std::vector<Bundle> take() { return std::move(bundles_); }

 private:
  // Whether the runs of the shared positions can take this sequence's targets, too.
  bool has_room(int64_t context, int64_t shared, int64_t scored) const {
    for (int64_t at = context; at < shared; ++at) {
      if (bundles_.back().runs[path_[at]].target_count + scored > options_.max_tokens) return false;
    }
    return true;
  }

  std::span<const ScoredSequence> sequences_;
  const ScorePlanOptions& options_;
  std::vector<Bundle> bundles_;
  std::vector<size_t> path_;  // by position: the run of the latest bundle that computes it
};

int64_t tokens_of(std::span<const Bundle> bundles) {
  return std::accumulate(bundles.begin(), bundles.end(), int64_t{0},
                         [](int64_t sum, const Bundle& bundle) { return sum + bundle.tokens; });
}

std::vector<Bundle> bundles_alone(std::span<const ScoredSequence> sequences, const ScorePlanOptions& options) {
  Bundler bundler(sequences, options);
  for (size_t i = 0; i < sequences.size(); ++i) bundler.add(i, 0);
  return bundler.take();
}

std::vector<Bundle> bundles_sharing(std::span<const ScoredSequence> sequences, const ScorePlanOptions& options) {
  std::vector<size_t> order(sequences.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const std::span<const int32_t> x = inputs(sequences[a]), y = inputs(sequences[b]);
    return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
  });
  Bundler bundler(sequences, options);
  for (size_t n = 0; n < order.size(); ++n) {
    const int64_t shared = n == 0 ? 0 : common_beginning(inputs(sequences[order[n - 1]]), inputs(sequences[order[n]]));
    bundler.add(order[n], shared);
  }
  return bundler.take();
}

// Whether a run and its targets still fit into the call.
bool fits(const ScoringCall& call, const ScoredRun& run, int64_t most) {
  return call.tokens + run.tokens() <= most && call.targets + run.target_count <= most;
}

void add_run(ScoringCall& call, const ScoredRun& run, int32_t slot) {
  call.runs.push_back(run);
  call.runs.back().slot = slot;
  call.tokens += run.tokens();
  call.targets += run.target_count;
}

// Each call takes the next run of as many bundles as fit.
ScoringPack make_pack(std::span<const Bundle> bundles, int64_t max_tokens) {
  ScoringPack pack;
  std::vector<size_t> next(bundles.size());
  for (bool more = true; more;) {
    ScoringCall call;
    more = false;
    for (size_t b = 0; b < bundles.size(); ++b) {
      if (next[b] == bundles[b].runs.size()) continue;
      const ScoredRun& run = bundles[b].runs[next[b]];
      if (!fits(call, run, max_tokens)) {
        more = true;
        continue;
      }
      add_run(call, run, static_cast<int32_t>(b));
      more = ++next[b] < bundles[b].runs.size() || more;
    }
    pack.calls.push_back(std::move(call));
  }
  for (const Bundle& bundle : bundles) pack.cost += bundle.cost;
  return pack;
}

// A pack of one call for sequences that share nothing.
std::vector<ScoringPack> packs_alone(std::span<const Bundle> bundles, int64_t max_tokens) {
  std::vector<ScoringPack> packs;
  for (const Bundle& bundle : bundles) {
    if (packs.empty() || !fits(packs.back().calls[0], bundle.runs[0], max_tokens)) packs.push_back({{{}}, 0});
    ScoringCall& call = packs.back().calls[0];
    add_run(call, bundle.runs[0], static_cast<int32_t>(call.runs.size()));
    packs.back().cost += bundle.cost;
  }
  return packs;
}

}  // namespace

ScorePlan plan_scores(std::span<const ScoredSequence> sequences, const ScorePlanOptions& options) {
  for (size_t i = 0; i < sequences.size(); ++i) {
    const int64_t length = std::ssize(sequences[i].tokens) - 1, scored = sequences[i].scored;
    TOKAMAK_CHECK(length >= 1 && length <= options.max_tokens && scored >= 1 && scored <= length, "sequence ", i,
                  " has ", length + 1, " tokens, ", scored, " of them scored");
  }
  std::vector<Bundle> alone = bundles_alone(sequences, options);
  std::vector<Bundle> sharing = options.slots > 0 ? bundles_sharing(sequences, options) : std::vector<Bundle>();
  const bool shares = options.slots > 0 && 10 * tokens_of(sharing) <= 9 * tokens_of(alone);
  std::vector<Bundle>& bundles = shares ? sharing : alone;
  // Bundles of one cost make a pack whose calls have equally many runs.
  std::stable_sort(bundles.begin(), bundles.end(), [](const Bundle& a, const Bundle& b) { return a.cost > b.cost; });
  if (!shares) return {Beginnings::kComputedAlone, packs_alone(bundles, options.max_tokens)};

  const int64_t width = std::min(options.slots, std::max(kFewestBundles, std::ssize(bundles) / kPacks));
  std::vector<ScoringPack> packs;
  for (size_t at = 0; at < bundles.size(); at += static_cast<size_t>(width)) {
    const size_t count = std::min(static_cast<size_t>(width), bundles.size() - at);
    packs.push_back(make_pack(std::span(bundles).subspan(at, count), options.max_tokens));
  }
  return {Beginnings::kShared, std::move(packs)};
}

std::vector<std::vector<size_t>> split_by_cost(std::span<const ScoringPack> packs, int ranks) {
  std::vector<size_t> order(packs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return packs[a].cost > packs[b].cost; });
  std::vector<std::vector<size_t>> split(static_cast<size_t>(ranks));
  std::vector<double> load(static_cast<size_t>(ranks), 0);
  for (const size_t pack : order) {
    const auto least = std::min_element(load.begin(), load.end()) - load.begin();
    split[static_cast<size_t>(least)].push_back(pack);
    load[static_cast<size_t>(least)] += packs[pack].cost;
  }
  return split;
}

}  // namespace tokamak

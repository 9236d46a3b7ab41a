// The plan by which a model scores sequences: tokens, their order, micro-batches, ranks. Choices of a question have a
// common beginning, and so have questions with the same examples. It is computed once: its keys and values stay in a
// slot of the cache, which is then cut back to where the next sequence parts. The plan does not depend on the number of
// ranks, and neither do the bits of the scores.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace tokamak {

struct ScoredSequence {
  std::vector<int32_t> tokens;  // a context of at least one token, and its continuation
  int64_t scored = 0;           // tokens of the continuation
  int64_t item = 0;             // index of its question or text
};

// The slot keeps the first `begin` tokens of the sequence, and computes those up to `end`.
struct ScoredRun {
  // Positions [from, to), of the run, predict the tokens that follow them in this sequence.
  struct Targets {
    size_t sequence = 0;
    int64_t from = 0, to = 0;
  };
  size_t sequence = 0;
  int64_t begin = 0, end = 0;
  std::vector<Targets> targets = {};
  int64_t target_count = 0;
  int32_t slot = 0;

  int64_t tokens() const { return end - begin; }
};

// A micro-batch.
struct ScoringCall {
  std::vector<ScoredRun> runs;
  int64_t tokens = 0, targets = 0;
};

// Calls that one rank computes in order, with all slots its own.
struct ScoringPack {
  std::vector<ScoringCall> calls;
  double cost = 0;
};

// Whether common beginnings of sequences are computed once, in the cache of keys and values.
enum class Beginnings { kShared, kComputedAlone };

struct ScorePlan {
  Beginnings beginnings = Beginnings::kComputedAlone;  // then a run has a whole sequence, and slots mean nothing
  std::vector<ScoringPack> packs;
};

struct ScorePlanOptions {
  int64_t slots = 0;       // of the cache; 0: none, so that nothing is shared
  int64_t max_tokens = 0;  // and targets, per micro-batch; no sequence has more inputs
  std::function<double(double attended)> token_cost = [](double) { return 1; };  // of a token that attends to so many
};

// Sequences share beginnings only if this spares a tenth of all tokens: the cache costs some time itself.
ScorePlan plan_scores(std::span<const ScoredSequence> sequences, const ScorePlanOptions& options);

// The packs of each rank: the costliest first, each to the rank with the least so far (Graham 1969: at most 4/3 of the
// best split).                                                                                               (ranks)
std::vector<std::vector<size_t>> split_by_cost(std::span<const ScoringPack> packs, int ranks);

}  // namespace tokamak

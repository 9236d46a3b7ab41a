// Scores of continuations: every benchmark is a list of these, and a rule that computes metrics from them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "eval/score_plan.h"

namespace tokamak {

struct SequenceScore {
  double log_likelihood = 0;  // log p(continuation | context), in nats: the sum over the continuation's tokens
  bool greedy = true;         // whether each of them is the likeliest token
};

// -sum log p of all.
double nats_of(std::span<const SequenceScore> scores);

// Scores each sequence. Collective: the ranks share the sequences, and each gets all results; none may have more than
// max_length() + 1 tokens. Common beginnings are computed once if the engine has a cache for that: CacheEnds::kCutOff,
// and longer than each sequence. Logs a line of progress every 30 seconds. Calls `between` between micro-batches, on
// all ranks; it may throw.                                                                               (sequences)
std::vector<SequenceScore> score_sequences(Engine& engine, std::span<const ScoredSequence> sequences,
                                           const std::function<void()>& between);

}  // namespace tokamak

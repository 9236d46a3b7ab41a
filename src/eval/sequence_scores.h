// Scores of continuations: every benchmark is a list of these, and a rule that computes metrics from them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/engine.h"

namespace tokamak {

struct ScoredSequence {
  std::vector<int32_t> tokens;  // a context of at least one token, and its continuation
  int64_t scored = 0;           // tokens of the continuation
  int64_t item = 0;             // index of its question or text
};

struct SequenceScore {
  double log_likelihood = 0;  // log p(continuation | context), in nats: the sum over the continuation's tokens
  bool greedy = true;         // whether each of them is the likeliest token
};

// -sum log p of all.
double nats_of(std::span<const SequenceScore> scores);

// Scores each sequence. Collective: the ranks share the sequences, and each gets all results. Several sequences form
// one batch, each its own document; none may have more than max_length() + 1 tokens. Logs a line of progress every 30
// seconds. Calls `between` between micro-batches, on all ranks; it may throw.                           (sequences)
std::vector<SequenceScore> score_sequences(Engine& engine, std::span<const ScoredSequence> sequences,
                                           const std::function<void()>& between);

}  // namespace tokamak

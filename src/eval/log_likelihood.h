// What a model makes of given continuations: every benchmark is a list of these, and a rule for reading the answers.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/engine.h"

namespace tokamak {

struct ScoredSequence {
  std::vector<int32_t> tokens;  // a context, at least one token of it, and its continuation
  int64_t scored = 0;           // tokens of the continuation
  int64_t item = 0;             // the question or text that it belongs to
};

// log p(continuation | context) of each sequence, in nats: the sum over the tokens of the continuation. Collective: the
// ranks share the sequences, and each has all answers. Several sequences are computed together, each its own document;
// none may have more than max_length() + 1 tokens. A line of progress in the log every 30 seconds. `between` is called
// between micro-batches, on all ranks alike; it may throw.                                               (sequences)
std::vector<double> log_likelihoods(Engine& engine, std::span<const ScoredSequence> sequences,
                                    const std::function<void()>& between);

}  // namespace tokamak

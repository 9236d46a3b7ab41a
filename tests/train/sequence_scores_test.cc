// Scores of continuations by a whole model.
#include "eval/sequence_scores.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "train/run_plan.h"
#include "train/toy_training.h"

using namespace tokamak;

TEST_CASE("a continuation is greedy if each of its tokens is the likeliest, and in no other case") {
  constexpr int32_t kVocab = 61;
  const ToyPlace place;
  RunConfig config = place.config("run");
  config.model.vocab_size = kVocab;
  const auto alone = make_single_comm();
  Backend backend = toy_backend();
  Engine engine(engine_options(config, {.max_tokens = 256, .max_length = 16}), *alone, backend);
  engine.commit();
  engine.parameters().initialize(7, engine.compute());
  const auto score = [&](std::vector<int32_t> tokens, int64_t scored) {
    const ScoredSequence sequence{std::move(tokens), scored};
    return score_sequences(engine, std::span(&sequence, 1), [] {}).at(0);
  };
  // The likeliest token after `tokens`, by the log-likelihood of each.
  const auto likeliest = [&](const std::vector<int32_t>& tokens) {
    std::vector<double> all;
    for (int32_t id = 0; id < kVocab; ++id) {
      std::vector<int32_t> with = tokens;
      with.push_back(id);
      all.push_back(score(with, 1).log_likelihood);
    }
    return static_cast<int32_t>(std::max_element(all.begin(), all.end()) - all.begin());
  };
  const int32_t first = likeliest({3, 4}), second = likeliest({3, 4, first});
  const int32_t other = (first + 1) % kVocab, after_other = likeliest({3, 4, other});
  CHECK(score({3, 4, first}, 1).greedy);
  CHECK(score({3, 4, first, second}, 2).greedy);
  CHECK(!score({3, 4, other}, 1).greedy);
  CHECK(!score({3, 4, other, after_other}, 2).greedy);
  CHECK(score({3, 4, other, after_other}, 1).greedy);  // the rest is context
  CHECK(!score({3, 4, first, (second + 1) % kVocab}, 2).greedy);
}

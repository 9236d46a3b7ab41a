// Scores of continuations by a whole model.
#include "eval/sequence_scores.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "support/ranks.h"
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

namespace {

// Scores by an engine whose cache lets sequences share beginnings, or by one that computes each alone.
std::vector<SequenceScore> scores_of(const RunConfig& config, std::span<const ScoredSequence> sequences, Comm& comm,
                                     CacheEnds ends) {
  Backend backend = toy_backend();
  Engine engine(engine_options(config, {.max_tokens = 96,
                                        .max_length = 48,
                                        .training = false,
                                        .cached_sequences = 4,
                                        .cached_length = 48,
                                        .cache_ends = ends}),
                comm, backend);
  engine.commit();
  engine.parameters().initialize(7, engine.compute());
  return score_sequences(engine, sequences, [] {});
}

// Questions with examples in common, and choices of one to three tokens.
std::vector<ScoredSequence> questions_with_examples(int32_t vocab) {
  const RandomStream random(1, "questions");
  uint64_t draw = 0;
  const auto text = [&](size_t length) {
    std::vector<int32_t> tokens(length);
    for (int32_t& id : tokens) id = static_cast<int32_t>(random.uniform(draw++) * vocab);
    return tokens;
  };
  std::vector<ScoredSequence> sequences;
  for (int subject = 0; subject < 3; ++subject) {
    const std::vector<int32_t> examples = text(20);
    for (int64_t question = 0; question < 7; ++question) {
      std::vector<int32_t> context = examples;
      for (const int32_t id : text(5 + static_cast<size_t>(question))) context.push_back(id);
      for (size_t choice = 0; choice < 4; ++choice) {
        const std::vector<int32_t> answer = text(1 + choice % 3);
        sequences.push_back({context, std::ssize(answer), question});
        sequences.back().tokens.insert(sequences.back().tokens.end(), answer.begin(), answer.end());
      }
    }
  }
  return sequences;
}

// In f32 and with a window or none.
void compare_with_alone(World& world, int64_t window) {
  const ToyPlace place;
  RunConfig config = place.config("run");
  config.model.vocab_size = 61;
  if (window > 0) config.model.sliding_window = window;
  const std::vector<ScoredSequence> sequences = questions_with_examples(61);
  const auto alone = make_single_comm();
  const std::vector<SequenceScore> expected = scores_of(config, sequences, *alone, CacheEnds::kAppended);
  const std::vector<SequenceScore> shared = scores_of(config, sequences, *alone, CacheEnds::kCutOff);
  const std::vector<SequenceScore> split = scores_of(config, sequences, world.comm(), CacheEnds::kCutOff);
  double largest = 0;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const double difference = std::abs(shared[i].log_likelihood - expected[i].log_likelihood);
    largest = std::max(largest, difference / double(sequences[i].scored));
    CHECK(shared[i].greedy == expected[i].greedy);
    CHECK(split[i].log_likelihood == shared[i].log_likelihood);
  }
  // Sums of f32 in another order: a few roundings of 2^-24 of a logit through two layers.
  CHECK(largest < 2e-6);
  CHECK(largest > 0);  // the cache was used
}

}  // namespace

RANKS_CASE("scores with common beginnings are those of each sequence alone, and their bits those of one rank") {
  compare_with_alone(world, 0);
}

RANKS_CASE("so they are with a window that what is cut off would have filled") { compare_with_alone(world, 5); }

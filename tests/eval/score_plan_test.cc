// Plans of what to compute, carried out by a model that only remembers the tokens of each slot.
#include "eval/score_plan.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <set>

#include "base/rng.h"

using namespace tokamak;

namespace {

using Sequences = std::vector<ScoredSequence>;

// Carries a plan out. Each target must be seen once, after exactly the tokens before it. Returns the computed tokens.
int64_t carry_out(const ScorePlan& plan, const Sequences& sequences, const ScorePlanOptions& options) {
  std::vector<int64_t> next;  // by sequence: the position of its next target
  for (const ScoredSequence& sequence : sequences) next.push_back(std::ssize(sequence.tokens) - 1 - sequence.scored);
  int64_t computed = 0;
  for (const ScoringPack& pack : plan.packs) {
    std::vector<std::vector<int32_t>> slots(1000);
    for (const ScoringCall& call : pack.calls) {
      int64_t tokens = 0, targets = 0;
      std::set<int32_t> used;
      for (const ScoredRun& run : call.runs) {
        REQUIRE(used.insert(run.slot).second);
        if (plan.beginnings == Beginnings::kShared) REQUIRE(run.slot < options.slots);
        if (plan.beginnings == Beginnings::kComputedAlone) REQUIRE(run.begin == 0);
        const std::vector<int32_t>& own = sequences[run.sequence].tokens;
        std::vector<int32_t>& slot = slots[static_cast<size_t>(run.slot)];
        REQUIRE(run.begin <= std::ssize(slot));
        REQUIRE(run.begin < run.end);
        slot.resize(static_cast<size_t>(run.begin));
        slot.insert(slot.end(), own.begin() + run.begin, own.begin() + run.end);
        REQUIRE(std::equal(slot.begin(), slot.end(), own.begin()));
        for (const ScoredRun::Targets& part : run.targets) {
          const std::vector<int32_t>& scored = sequences[part.sequence].tokens;
          REQUIRE((run.begin <= part.from && part.from < part.to && part.to <= run.end));
          REQUIRE(part.from == next[part.sequence]);
          REQUIRE(std::equal(slot.begin(), slot.begin() + part.to, scored.begin()));
          next[part.sequence] = part.to;
          targets += part.to - part.from;
        }
        tokens += run.tokens();
      }
      CHECK(tokens == call.tokens);
      CHECK(targets == call.targets);
      CHECK(tokens <= options.max_tokens);
      CHECK(targets <= options.max_tokens);
      computed += tokens;
    }
  }
  for (size_t i = 0; i < sequences.size(); ++i) CHECK(next[i] == std::ssize(sequences[i].tokens) - 1);
  return computed;
}

int64_t inputs_of(const Sequences& sequences) {
  return std::accumulate(sequences.begin(), sequences.end(), int64_t{0},
                         [](int64_t sum, const ScoredSequence& s) { return sum + std::ssize(s.tokens) - 1; });
}

// Distinct beginnings of all inputs: what a model must compute at least.
int64_t nodes_of(const Sequences& sequences) {
  std::set<std::vector<int32_t>> beginnings;
  for (const ScoredSequence& s : sequences) {
    for (size_t n = 1; n < s.tokens.size(); ++n) beginnings.insert({s.tokens.begin(), s.tokens.begin() + n});
  }
  return std::ssize(beginnings);
}

// Random sequences, each of which begins like an earlier one.
Sequences random_tree(const RandomStream& random, size_t count) {
  Sequences sequences;
  uint64_t draw = 0;
  const auto below = [&](size_t n) { return static_cast<size_t>(random.uniform(draw++) * double(n)); };
  for (size_t i = 0; i < count; ++i) {
    std::vector<int32_t> tokens = {0};
    if (i > 0) {
      const std::vector<int32_t>& like = sequences[below(i)].tokens;
      tokens.assign(like.begin(), like.begin() + static_cast<std::ptrdiff_t>(1 + below(like.size())));
    }
    while (tokens.size() < 2 || below(4) > 0) tokens.push_back(static_cast<int32_t>(below(5)));
    tokens.resize(std::min<size_t>(tokens.size(), 33));
    sequences.push_back({tokens, static_cast<int64_t>(1 + below(tokens.size() - 1)), static_cast<int64_t>(i)});
  }
  return sequences;
}

// Five-shot questions: a subject's 600 tokens, 100 of each question, and four choices of one token.
Sequences like_mmlu(int32_t subjects, int32_t questions) {
  Sequences sequences;
  for (int32_t s = 0; s < subjects; ++s) {
    for (int32_t q = 0; q < questions; ++q) {
      for (int32_t choice = 0; choice < 4; ++choice) {
        std::vector<int32_t> tokens(600, s);
        tokens.insert(tokens.end(), 100, 1000 + q);
        tokens.push_back(choice);
        sequences.push_back({std::move(tokens), 1, 0});
      }
    }
  }
  return sequences;
}

}  // namespace

TEST_CASE("every target of a plan follows the tokens before it, once, in whatever order and micro-batch") {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const RandomStream random(seed, "trees");
    const Sequences sequences = random_tree(random, 1 + seed % 60);
    for (const ScorePlanOptions& options : {ScorePlanOptions{.slots = 0, .max_tokens = 32},
                                            {.slots = 1, .max_tokens = 32},
                                            {.slots = 3, .max_tokens = 40},
                                            {.slots = 64, .max_tokens = 1000}}) {
      INFO("seed " << seed << ", " << options.slots << " slots");
      const ScorePlan plan = plan_scores(sequences, options);
      const int64_t computed = carry_out(plan, sequences, options);
      CHECK(computed <= inputs_of(sequences));
      CHECK(computed >= nodes_of(sequences));
      CHECK((options.slots > 0 || computed == inputs_of(sequences)));
    }
  }
}

TEST_CASE("the choices of a question cost one position, and its examples are computed for many questions at once") {
  const Sequences sequences = like_mmlu(3, 100);
  const ScorePlanOptions options{.slots = 8, .max_tokens = 4096};
  const ScorePlan plan = plan_scores(sequences, options);
  REQUIRE(plan.beginnings == Beginnings::kShared);
  const int64_t computed = carry_out(plan, sequences, options), least = nodes_of(sequences);
  CHECK(least == 3 * 600 + 3 * 100 * 100);
  CHECK(computed <= least * 9 / 8);  // the examples once for each bundle of eight times their length
  CHECK(5 * computed < 300 * 700);   // computing each question once
  CHECK(20 * computed < inputs_of(sequences));
  CHECK(plan.packs.at(0).calls.at(0).runs.size() > 3);  // more slots than subjects work
}

TEST_CASE("sequences are computed alone if that costs hardly more") {
  Sequences sequences;
  for (int32_t i = 0; i < 20; ++i) {
    std::vector<int32_t> tokens(50, i);
    tokens.insert(tokens.begin(), {7, 7, 7});
    sequences.push_back({tokens, 1, i});
  }
  const ScorePlanOptions options{.slots = 8, .max_tokens = 200};
  CHECK(plan_scores(sequences, options).beginnings == Beginnings::kComputedAlone);
  sequences.push_back(sequences[0]);
  sequences.push_back(sequences[1]);
  sequences.push_back(sequences[2]);
  CHECK(plan_scores(sequences, options).beginnings == Beginnings::kShared);
}

TEST_CASE("a row that very many sequences score is computed again rather than overflow a micro-batch") {
  const ScorePlanOptions options{.slots = 8, .max_tokens = 10};
  Sequences sequences;
  for (int32_t i = 0; i < 35; ++i) sequences.push_back({{1, 2, 3, 4, 5, 6, i}, 1, i});
  const ScorePlan plan = plan_scores(sequences, options);
  REQUIRE(plan.beginnings == Beginnings::kShared);
  CHECK(carry_out(plan, sequences, options) == 4 * 6);
}

TEST_CASE("sequences of similar length share a micro-batch, which no padding fills") {
  Sequences sequences;
  for (int32_t i = 0; i < 64; ++i) sequences.push_back({std::vector<int32_t>(i % 2 == 0 ? 9 : 33, i), 1, i});
  const ScorePlanOptions options{.slots = 0, .max_tokens = 64};
  const ScorePlan plan = plan_scores(sequences, options);
  carry_out(plan, sequences, options);
  CHECK(plan.packs.size() == 32 / 2 + 32 / 8);
}

TEST_CASE("work is split by cost: no rank has more than the best split and one pack") {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const RandomStream random(seed, "costs");
    std::vector<ScoringPack> packs(1 + static_cast<size_t>(random.uniform(0) * 300));
    double sum = 0, largest = 0;
    for (size_t i = 0; i < packs.size(); ++i) {
      packs[i].cost = 1 / random.uniform(i + 1);
      sum += packs[i].cost;
      largest = std::max(largest, packs[i].cost);
    }
    const int ranks = 2 + static_cast<int>(seed % 63);
    const std::vector<std::vector<size_t>> split = split_by_cost(packs, ranks);
    REQUIRE(std::ssize(split) == ranks);
    std::set<size_t> seen;
    for (const std::vector<size_t>& own : split) {
      double load = 0;
      for (const size_t pack : own) {
        REQUIRE(seen.insert(pack).second);
        load += packs[pack].cost;
      }
      CHECK(load <= std::max(sum / ranks, largest) * 4 / 3 + 1e-9);
    }
    CHECK(seen.size() == packs.size());
  }
}

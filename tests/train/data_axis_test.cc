// A data axis smaller than the world: every sum counts the samples of ranks that read the same ones once.
#include <catch2/catch.hpp>

#include "eval/sequence_scores.h"
#include "support/ranks.h"
#include "train/run_plan.h"
#include "train/toy_training.h"
#include "train/validation.h"

using namespace tokamak;

TEST_CASE("four ranks, of which pairs read the same samples, train and validate to the bits of two ranks") {
  const ToyPlace place;
  const auto changed = [&](const std::string& name) {
    RunConfig config = place.config(name, 2);
    config.training.validation_interval = 3;
    config.metrics.tensor_statistics = 3;
    config.resilience.recompute_interval = 2;
    return config;
  };
  train(2, changed("two"));
  train(4, changed("pairs"), {.readers = 2});
  CHECK((saved_state(place.checkpoint("pairs", 6)) == saved_state(place.checkpoint("two", 6))));
  for (const char* key : {"tokens", "loss/last", "optim/grad_norm", "validation/loss"}) {
    INFO(key);
    CHECK(!records(place.run("two"), key).empty());
    CHECK(records(place.run("pairs"), key) == records(place.run("two"), key));
  }
}

RANKS_CASE("scores and held-out losses count each sequence once, however many ranks read the same ones") {
  const ToyPlace place;
  RunConfig config = place.config("run");
  config.model.vocab_size = 61;
  config.data.order = SampleOrder::kSequential;
  const SampleSource source(config.data, config.data.validation, 7, 61);
  std::vector<ScoredSequence> sequences;
  for (int32_t i = 0; i < 5; ++i) sequences.push_back({{3 + i, 4, 5, 6 + i, 7}, 2, i});
  const auto results = [&](const Mesh& mesh) {
    Backend backend = toy_backend();
    Engine engine(engine_options(config, {.max_tokens = 16, .max_length = 16}), mesh, backend);
    engine.commit();
    engine.parameters().initialize(7, engine.compute());
    std::vector<double> all;
    for (const SequenceScore& score : score_sequences(engine, sequences, [] {})) {
      all.push_back(score.log_likelihood);
      all.push_back(score.greedy ? 1 : 0);
    }
    all.push_back(mean_loss(engine, source, {.sequences = 5}, [] {}));
    return all;
  };
  const auto alone = make_single_comm();
  const std::vector<double> expected = results(*alone);
  CHECK(expected.front() < -1);
  for (const int readers : {1, 2, 3, 4}) {
    if (world.size() % readers != 0) continue;
    const MeshGroups groups(world.comm(), 1, readers);
    const std::vector<double> found = results(groups.mesh());
    for (size_t i = 0; i < expected.size(); ++i) CHECK(found[i] == Approx(expected[i]).epsilon(1e-6));
  }
}

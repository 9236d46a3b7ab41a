#include "train/evaluator.h"

#include <catch2/catch.hpp>

#include "support/ranks.h"
#include "train/run_plan.h"
#include "train/toy_training.h"

using namespace tokamak;

RANKS_CASE("the mean loss of held-out sequences is theirs alone, however they are cut and shared") {
  const ToyPlace place;
  RunConfig config = place.config("run");
  config.model.vocab_size = 61;
  config.data.order = SampleOrder::kSequential;
  const SampleSource source(config.data, config.data.validation, 7, 61);
  const auto loss = [&](Comm& comm, int64_t sequences, int64_t micro_batch) {
    Backend backend = toy_backend();
    Engine engine(engine_options(config, {.max_tokens = 4 * 16, .max_length = 16}), comm, backend);
    engine.commit();
    engine.parameters().initialize(7, engine.compute());
    return Evaluator(source, sequences, micro_batch, true).mean_loss(engine, [] {});
  };
  const auto alone = make_single_comm();
  const double expected = loss(*alone, 5, 1);
  CHECK(expected == Approx(4.1).margin(0.1));  // about ln(61)
  CHECK(loss(*alone, 4, 1) != Approx(expected).epsilon(1e-4));
  // Where the ranks cannot share five equally, the last ones are fillers that do not count.
  for (const int64_t micro_batch : {1, 2, 3, 4}) {
    CHECK(loss(world.comm(), 5, micro_batch) == Approx(expected).epsilon(1e-6));
  }
}

TEST_CASE("no more sequences are asked for than the data has windows") {
  const ToyPlace place;
  const RunConfig config = place.config("run");
  const SampleSource source(config.data, config.data.validation, 7, 61);
  const Evaluator evaluator(source, 1'000'000, 1, true);
  CHECK(evaluator.sequences() == source.windows(0));
  CHECK(evaluator.tokens() == source.windows(0) * 16);
}

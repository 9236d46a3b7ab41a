#include "train/validation.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "data/dataset_writer.h"
#include "support/captured_log.h"
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
    return mean_loss(engine, source, {.sequences = sequences, .micro_batch = micro_batch}, [] {});
  };
  const auto alone = make_single_comm();
  const double expected = loss(*alone, 5, 1);
  CHECK(expected == Approx(4.1).margin(0.1));  // about ln(61)
  CHECK(loss(*alone, 4, 1) != Approx(expected).epsilon(1e-4));
  // If the ranks cannot share five equally, the last ones are fillers that do not count.
  for (const int64_t micro_batch : {1, 2, 3, 4}) {
    CHECK(loss(world.comm(), 5, micro_batch) == Approx(expected).epsilon(1e-6));
  }
}

TEST_CASE("all held-out sequences are validated where they cost at most 5 % of the training before, else as many") {
  const TempDir dir;
  Manifest head;
  head.vocab_size = 61;
  head.tokenizer = {"toy", "hash", ""};
  DatasetWriter writer(dir.path(), head, 1'000'000);
  writer.append(std::vector<int32_t>(200 * 16 + 1, 5));
  writer.finish();
  DataOptions in_order;
  in_order.sequence_length = 16;
  const std::vector<SourceOptions> set = {{.path = dir.path()}};
  const SampleSource source(in_order, set, 7, 61);
  const int64_t all = all_sequences(source);
  REQUIRE(all == 200);
  RunConfig config;
  const auto taken = [&](int64_t interval, int64_t sequences_per_step) {
    config.training.validation_interval = interval;
    const GlobalBatch batch{.length = 16, .sequences_per_step = sequences_per_step, .total_steps = 1000};
    return validation_sequences(config, batch, source);
  };
  CHECK(taken(1, 1) == 64);
  CHECK(taken(10, 50) == 75);  // 5 % of 500 sequences forward and backward are 75 forward
  CHECK(taken(100, 50) == all);
  CHECK(taken(0, 50) == all);       // validated once, at the end
  CHECK(taken(100'000, 1) == 150);  // there are only 1000 steps
  config.averages.resize(2);
  CHECK(taken(30, 50) == 75);  // each sequence is validated three times
  config.training.validation_sequences.value = 7;
  CHECK(taken(100, 50) == 7);
  config.training.validation_sequences.value = 1'000'000;
  CHECK(taken(100, 50) == all);
}

TEST_CASE("a validation set that the run trains on is a warning, under whatever path it lies") {
  const ToyPlace place;
  std::filesystem::copy(place.file("train"), place.file("copy"), std::filesystem::copy_options::recursive);
  const auto said = [&](const std::string& validation) {
    log::configure(0, 1, log::Level::kWarning);
    CapturedLog captured;
    RunConfig config = place.config(str("run-", validation));
    config.data.validation = {{place.file(validation)}};
    train(1, config, {.stop_at_step = 1});
    log::configure(0, 1, log::Level::kOff);
    return captured.text();
  };
  const std::string train = place.file("train");
  CHECK_THAT(said("train"),
             Catch::Contains(str("data.validation ", train, " is data.sources ", train, ": the run trains")));
  CHECK_THAT(said("copy"),
             Catch::Contains(str("data.validation ", place.file("copy"), " is a copy of data.sources ", train)));
  CHECK_THAT(said("validation"), !Catch::Contains("trains on it"));
}

TEST_CASE("a limit of epochs on held-out data is refused, since none are counted") {
  const ToyPlace place;
  RunConfig config = place.config("run");
  config.data.validation[0].max_epochs = 2;
  const SharedError error = error_of(1, config);
  CHECK(error.kind() == Kind::kConfig);
  CHECK_THAT(error.what(), Catch::Contains("data.validation[0].max_epochs is 2"));
}

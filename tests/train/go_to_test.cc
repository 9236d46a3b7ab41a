// Trainer::go_to: a trainer that goes to the state of a checkpoint trains on as a run that was started from it.
#include <array>
#include <catch2/catch.hpp>

#include "base/file.h"
#include "checkpoint/reader.h"
#include "checkpoint/store.h"
#include "train/toy_training.h"

using namespace tokamak;

namespace {

std::vector<float> master_of(Engine& engine) {
  engine.compute().synchronize();
  const Tensor master = engine.state().front().tensor;
  const auto* values = master.as<float>();
  return {values, values + master.count()};
}

}  // namespace

TEST_CASE("a trainer that goes back to a step trains to the bits of a run that resumed there") {
  const ToyPlace place;
  const auto changed = [&](const std::string& name) {
    RunConfig config = place.config(name, 2);
    config.resilience.verify_state = true;     // a guard that still has the old state's sums would report corruption
    config.resilience.recompute_interval = 2;  // reads samples again
    config.training.evals = {{}};              // at the end
    return config;
  };
  train(2, changed("source"), {.stop_at_step = 3});
  RunConfig resumed = changed("resumed");
  resumed.checkpoint.load = place.checkpoint("source", 3);
  train(2, resumed);

  std::array<std::vector<std::vector<float>>, 2> ends;  // by rank: after the first end, and after the second
  std::array<Engine*, 2> engines{};
  ToyRunOptions options;
  options.evals = [&](Engine& engine, const std::function<void()>&) {
    const auto rank = static_cast<size_t>(engine.comm().rank());
    engines[rank] = &engine;
    ends[rank].push_back(master_of(engine));
    return std::vector<NamedValue>();
  };
  options.run = [&](World& world, Trainer& trainer) {
    trainer.run();
    CheckpointReader reader = CheckpointReader::open(place.checkpoint("source", 3));
    load_weights(world.comm(), reader, *engines[static_cast<size_t>(world.rank())]);
    trainer.go_to(reader.manifest().point.state);
    return trainer.run();
  };
  CHECK(train(2, changed("twice"), options) == RunEnd::kDone);
  for (const auto& of_rank : ends) {
    REQUIRE(of_rank.size() == 2);
    CHECK(of_rank[0] == of_rank[1]);
  }
  const auto twice = records(place.run("twice"));
  CHECK(twice.size() == 6);
  for (const auto& [step, loss] : records(place.run("resumed"))) CHECK(twice.at(step) == loss);
}

TEST_CASE("a trainer that goes back saves the steps after it again, to the bits of the first time") {
  const ToyPlace place;
  RunConfig config = place.config("run", 2);
  config.checkpoint.interval = TrainingLength::tokens(2 * config.training.global_batch_tokens);
  config.checkpoint.keep_latest = 0;
  config.metrics.trace = "4-5";
  config.training.evals = {{}};
  std::array<Engine*, 2> engines{};
  std::vector<ToyState> saved;  // of steps 4 and 6, for each time that they were trained
  ToyRunOptions options;
  options.evals = [&](Engine& engine, const std::function<void()>&) {
    engines[static_cast<size_t>(engine.comm().rank())] = &engine;
    return std::vector<NamedValue>();
  };
  const auto collect = [&](World& world) {
    if (world.rank() == 0) {
      for (const int64_t step : {4, 6}) saved.push_back(saved_state(place.checkpoint("run", step)));
    }
    world.comm().barrier();
  };
  options.run = [&](World& world, Trainer& trainer) {
    trainer.run();
    for (int i = 0; i < 2; ++i) {
      collect(world);
      CheckpointReader reader = CheckpointReader::open(place.checkpoint("run", 2));
      load_weights(world.comm(), reader, *engines[static_cast<size_t>(world.rank())]);
      trainer.go_to(reader.manifest().point.state);
      trainer.run();
    }
    collect(world);
    return RunEnd::kDone;
  };
  train(2, config, options);
  CHECK(steps_of(place, "run") == std::vector<int64_t>{2, 4, 6});
  REQUIRE(saved.size() == 6);
  for (size_t i = 2; i < saved.size(); ++i) CHECK((saved[i] == saved[i - 2]));
  CHECK(CheckpointStore(place.run("run") + "/checkpoints").set_aside().size() == 4);
  const std::string trace = read_text(place.run("run") + "/trace-4-5.json", Kind::kBug);
  int traced = 0;
  for (size_t at = 0; (at = trace.find("\"step 4\"", at)) != std::string::npos; ++at) ++traced;
  CHECK(traced == 2);  // once on each rank
}

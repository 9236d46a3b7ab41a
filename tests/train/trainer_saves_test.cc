// Saves of a run: during training, after a stop in any phase, with bad weights, with a changed config.
#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>

#include "monitor/run_status.h"
#include "train/toy_training.h"

using namespace tokamak;
using Catch::Contains;

TEST_CASE("a stop within a validation or an evaluation ends it, and is saved after this very step") {
  const ToyPlace place;
  RunConfig config = place.config("run", 2);
  config.training.evals = {{}};
  config.training.evals_interval = 3;
  std::atomic<int> batches{0};
  ToyRunOptions options;
  options.evals = [&](Engine&, const std::function<void()>& between) {
    for (int i = 0; i < 1000; ++i) {
      if (++batches == 20) std::raise(SIGTERM);
      between();
    }
    return std::vector<NamedValue>{{"done", 1}};
  };
  CHECK(train(2, config, options) == RunEnd::kStopped);
  CHECK(batches < 100);
  CHECK(steps_of(place, "run") == std::vector<int64_t>{3});
  CHECK(records(place.run("run"), "evals/done").empty());
  // A validation also checks for a stop between two micro-batches.
  RunConfig validated = place.config("validated", 2);
  validated.training.validation_interval = 2;
  validated.training.evals = {{}};
  validated.training.evals_interval = 2;
  options.evals = [](Engine&, const std::function<void()>&) {
    std::raise(SIGTERM);  // right after the validation of step 2
    return std::vector<NamedValue>();
  };
  CHECK(train(2, validated, options) == RunEnd::kStopped);
  CHECK(records(place.run("validated"), "validation/loss").count(2) == 1);
}

TEST_CASE(
    "what a stop cuts is made again by the next start, on any number of ranks, with the numbers of a run without") {
  const ToyPlace place;
  const auto config_of = [&](const std::string& name, int ranks) {
    RunConfig config = place.config(name, ranks);
    config.training.validation_interval = config.training.evals_interval = 2;
    config.training.evals = {{}};
    return config;
  };
  bool stops = false;
  ToyRunOptions options;
  options.evals = [&](Engine&, const std::function<void()>& between) {
    if (stops) std::raise(SIGTERM);
    between();
    return std::vector<NamedValue>{{"done", 1}};
  };
  CHECK(train(1, config_of("straight", 1), options) == RunEnd::kDone);
  stops = true;
  CHECK(train(1, config_of("run", 1), options) == RunEnd::kStopped);
  CHECK(train(1, config_of("run", 1), options) == RunEnd::kStopped);  // cut again
  CHECK(steps_of(place, "run") == std::vector<int64_t>{2});
  CHECK(records(place.run("run"), "evals/done").empty());
  stops = false;
  CHECK(train(2, config_of("run", 2), options) == RunEnd::kDone);
  CHECK(records(place.run("run"), "evals/done") == records(place.run("straight"), "evals/done"));
  const auto losses = records(place.run("run"), "validation/loss"),
             expected = records(place.run("straight"), "validation/loss");
  CHECK((losses.size() == 3 && losses.at(2) == Approx(expected.at(2)).epsilon(1e-6)));
  CHECK(!saved_state(place.checkpoint("run", 6)).run.owes_evaluation);
}

TEST_CASE("a stop within the final validation keeps the last step, and the next start does what was cut short") {
  const ToyPlace place;
  RunConfig config = place.config("run", 2);
  config.training.evals = {{}};
  ToyRunOptions options;
  options.evals = [&](Engine&, const std::function<void()>& between) {
    std::raise(SIGTERM);
    between();
    return std::vector<NamedValue>{{"done", 1}};
  };
  CHECK(train(2, config, options) == RunEnd::kStopped);
  CHECK(steps_of(place, "run") == std::vector<int64_t>{6});
  CHECK(read_run_status(place.run("run"))->state == RunStatus::State::kStopped);
  std::atomic<int> taken{0};
  options.evals = [&](Engine&, const std::function<void()>&) {
    ++taken;
    return std::vector<NamedValue>{{"done", 1}};
  };
  CHECK(train(2, config, options) == RunEnd::kDone);
  CHECK(records(place.run("run"), "evals/done").count(6) == 1);
  CHECK(read_run_status(place.run("run"))->state == RunStatus::State::kDone);
  // A start of a finished run computes nothing again.
  CHECK(train(2, config, options) == RunEnd::kDone);
  CHECK(taken == 2);  // one on each rank
}

TEST_CASE("run.stop_after ends a run as a signal does") {
  const ToyPlace place;
  RunConfig config = place.config("run", 2);
  config.run.stop_after.seconds = 1e-9;  // the time is over before the first step
  CHECK(train(2, config) == RunEnd::kStopped);
  CHECK(steps_of(place, "run").empty());
  config.run.stop_after.seconds = 1e9;
  CHECK(train(2, config) == RunEnd::kDone);
}

TEST_CASE("weights that go bad push out no good checkpoint, and the error names the newest that is good") {
  const ToyPlace place;
  RunConfig config = place.config("run", 2);
  config.checkpoint.interval = TrainingLength::steps(1);
  config.checkpoint.keep_latest = 3;
  train(2, config, {.stop_at_step = 3});
  config.optimizer.lr = 1e38;  // step 4's loss is still finite; the weights after its update are not
  config.training.max_steps = 20;
  const SharedError error = error_of(2, config);
  CHECK(error.kind() == Kind::kNumerics);
  CHECK_THAT(error.hint(), Contains("checkpoint.load=" + place.checkpoint("run", 3)));
  CHECK(steps_of(place, "run") == std::vector<int64_t>{2, 3, 4});
  const RunStatus status = read_run_status(place.run("run")).value();
  CHECK(status.state == RunStatus::State::kFailed);
  CHECK(status.code == 7);
}

TEST_CASE("a stop has no time to read checkpoints back and removes none for want of it; the next start does") {
  const ToyPlace place;
  RunConfig config = place.config("run", 2);
  config.checkpoint.interval = TrainingLength::steps(2);
  config.checkpoint.keep_latest = 1;
  config.checkpoint.async = false;
  CHECK(train(2, config, {.stop_at_step = 5}) == RunEnd::kStopped);
  CHECK(steps_of(place, "run") == std::vector<int64_t>{4, 5});
  config.run.stop_after.seconds = 1e-9;  // the time is over before the first step
  CHECK(train(2, config) == RunEnd::kStopped);
  CHECK(steps_of(place, "run") == std::vector<int64_t>{5});
  const std::vector<std::string> second = {"start", "resume", "ready", "stop", "end"};  // nothing was saved
  std::vector<std::string> all = events(place.run("run"));
  all.erase(all.begin(), all.end() - std::ssize(second));
  CHECK(all == second);
}

TEST_CASE("saves beside training leave the same checkpoints, to the bit, as saves that training waits for") {
  const ToyPlace place;
  for (const int ranks : {1, 2, 3}) {
    for (const bool async : {true, false}) {
      RunConfig config = place.config(str(async ? "beside" : "waited", ranks), ranks);
      config.checkpoint.interval = TrainingLength::steps(1);
      config.checkpoint.keep_latest = 0;
      config.checkpoint.async = async;
      train(ranks, config);
    }
    for (int64_t step = 1; step <= 6; ++step) {
      CHECK((saved_state(place.checkpoint(str("beside", ranks), step)) ==
             saved_state(place.checkpoint(str("waited", ranks), step))));
    }
  }
}

TEST_CASE("a resume shows the checkpoint's config to its check, and a refusal is an error of all ranks") {
  const ToyPlace place;
  RunConfig config = place.config("run", 2);
  train(2, config, {.stop_at_step = 2});
  ToyRunOptions options;
  options.check_changes = [](const TrainingPoint& saved, const std::string& checkpoint) -> std::vector<std::string> {
    fail(Kind::kConfig, str("saved ", saved.config, " in ", checkpoint));
  };
  // The check comes before the weights are read, even if their shapes differ.
  for (const int64_t layers : {config.model.num_hidden_layers, config.model.num_hidden_layers + 1}) {
    config.model.num_hidden_layers = layers;
    const SharedError error = error_of(2, config, options);
    CHECK(error.kind() == Kind::kConfig);
    CHECK(error.what() == "saved seed: 7 in " + place.checkpoint("run", 2));
  }
}

TEST_CASE("what changed in the config is in the event of the resume; where nothing did, it has no such text") {
  const ToyPlace place;
  const RunConfig config = place.config("run", 2);
  train(2, config, {.stop_at_step = 2});
  ToyRunOptions options{.stop_at_step = 3};
  options.check_changes = [](const TrainingPoint&, const std::string&) {
    return std::vector<std::string>{"optimizer.lr: 0.003 -> 0.01", "training.max_steps: 6 -> 9"};
  };
  train(2, config, options);
  CHECK(last_event(place.run("run"), "resume").event->text("changed") ==
        "optimizer.lr: 0.003 -> 0.01; training.max_steps: 6 -> 9");
  train(2, config);
  CHECK(last_event(place.run("run"), "resume").event->texts.empty());
}

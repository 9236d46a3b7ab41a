// Whole runs with averages of the weights, on any number of ranks, resumed or not. Averages are compared with the
// weights in the run's checkpoints, and the runs' bits with those of a run without averages.
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "checkpoint/reader.h"
#include "support/captured_log.h"
#include "train/average_updates.h"
#include "train/run_plan.h"
#include "train/toy_training.h"
#include "train/validation.h"

using namespace tokamak;

namespace {

constexpr int64_t kSteps = 12;
constexpr double kHalfLife = 600;  // tokens: three steps of 192

// ema is updated after steps 2, 4, 6, ..., and mean after 5, 6, 7, ...
RunConfig config_of(const ToyPlace& place, const std::string& name, int ranks = 1, int64_t stage = 3) {
  RunConfig config = place.config(name, ranks);
  config.training.max_steps = kSteps;
  config.parallelism.zero_stage = stage;
  config.checkpoint.interval = TrainingLength::steps(1);
  config.checkpoint.keep_latest = 0;
  config.resilience.verify_state = true;
  config.averages = {
      {.name = "ema", .half_life = TrainingLength::tokens(kHalfLife), .every = 2, .start = TrainingLength::steps(2)},
      {.name = "mean", .half_life = {}, .every = 1, .start = TrainingLength::steps(5)}};
  return config;
}

RunConfig without_averages(RunConfig config) {
  config.averages.clear();
  return config;
}

using Progress = std::vector<AverageProgress>;
using Weights = std::map<std::string, std::vector<double>>;  // by name

Weights of_kind(const ToyState& state, const std::string& kind) {
  Weights all;
  for (const auto& [key, values] : state.tensors) {
    if (key.first == kind) all[key.second] = {values.begin(), values.end()};
  }
  return all;
}

// The sum over steps of share x the masters of that step's checkpoint.
Weights sum_of(const ToyPlace& place, const std::string& run, const std::map<int64_t, double>& shares) {
  Weights sum;
  for (const auto& [step, share] : shares) {
    for (const auto& [name, values] : of_kind(saved_state(place.checkpoint(run, step)), "master")) {
      sum[name].resize(values.size());
      for (size_t i = 0; i < values.size(); ++i) sum[name][i] += share * values[i];
    }
  }
  return sum;
}

double difference(const Weights& a, const Weights& b) {
  REQUIRE((!a.empty() && a.size() == b.size()));
  double worst = 0;
  for (const auto& [name, values] : a) {
    for (size_t i = 0; i < values.size(); ++i) worst = std::max(worst, std::abs(values[i] - b.at(name).at(i)));
  }
  return worst;
}

// Closed form: an update at tokens t leaves W_t a share of 1 - d, and each later one multiplies it by its own d.
std::map<int64_t, double> exponential_shares(const std::vector<int64_t>& updates) {
  std::map<int64_t, double> shares;
  const double last = double(updates.back());
  for (size_t i = 0; i < updates.size(); ++i) {
    const double gained = i == 0 ? 1 : 1 - std::pow(0.5, double(updates[i] - updates[i - 1]) * 192 / kHalfLife);
    shares[updates[i]] = gained * std::pow(0.5, (last - double(updates[i])) * 192 / kHalfLife);
  }
  return shares;
}

std::map<int64_t, double> mean_shares(int64_t first, int64_t last) {
  std::map<int64_t, double> shares;
  for (int64_t step = first; step <= last; ++step) shares[step] = 1.0 / double(last - first + 1);
  return shares;
}

std::vector<int64_t> steps_by_two(int64_t first, int64_t last) {
  std::vector<int64_t> steps;
  for (int64_t step = first; step <= last; step += 2) steps.push_back(step);
  return steps;
}

// Whether the averages of step 11 are those of the run's own weights.
void check_averages(const ToyPlace& place, const std::string& run) {
  const ToyState saved = saved_state(place.checkpoint(run, 11));
  CHECK((saved.run.averages == Progress{{"ema", 5, 10}, {"mean", 7, 11}}));
  const Weights ema = of_kind(saved, "average/ema"), mean = of_kind(saved, "average/mean");
  CHECK(difference(ema, sum_of(place, run, exponential_shares(steps_by_two(2, 10)))) < 1e-6);
  CHECK(difference(mean, sum_of(place, run, mean_shares(5, 11))) < 1e-6);
  CHECK(difference(ema, mean) > 1e-4);
}

ToyState without_averages(ToyState state) {
  std::erase_if(state.tensors, [](const auto& one) { return starts_with(one.first.first, "average/"); });
  state.run.averages.clear();
  return state;
}

}  // namespace

TEST_CASE("averages are those of the run's own weights, on any ranks and stage, and change no bit of the run",
          "[large]") {
  const ToyPlace place;
  train(1, config_of(place, "reference"));
  const Weights reference = of_kind(saved_state(place.checkpoint("reference", kSteps)), "average/ema");
  for (const int ranks : {1, 2, 3}) {
    for (const int64_t stage : {1, 2, 3}) {
      const std::string name = str(ranks, "-", stage);
      INFO(ranks << " ranks, stage " << stage);
      train(ranks, config_of(place, name, ranks, stage));
      check_averages(place, name);
      const ToyState state = saved_state(place.checkpoint(name, kSteps));
      CHECK(difference(of_kind(state, "average/ema"), reference) < 1e-3);  // updates are 2e-2
      if (ranks == 1) CHECK(difference(of_kind(state, "average/ema"), reference) == 0);
      train(ranks, without_averages(config_of(place, name + "-plain", ranks, stage)));
      CHECK((without_averages(state) == saved_state(place.checkpoint(name + "-plain", kSteps))));
    }
  }
}

TEST_CASE("a run that stops anywhere resumes its averages bit for bit, under another stage too") {
  const ToyPlace place;
  std::mt19937 random(20261127);
  for (const int ranks : {1, 2, 3}) {
    train(ranks, config_of(place, str("straight-", ranks), ranks));
    const ToyState straight = saved_state(place.checkpoint(str("straight-", ranks), kSteps));
    for (int trial = 0; trial < 3; ++trial) {
      const std::string name = str("stopped-", ranks, "-", trial);
      const int64_t first = 1 + static_cast<int64_t>(random() % 6),
                    second = first + 1 + static_cast<int64_t>(random() % 4);
      INFO(name << ", stopped at " << first << " and " << second);
      train(ranks, config_of(place, name, ranks), {.stop_at_step = first});
      train(ranks, config_of(place, name, ranks, 1), {.stop_at_step = second});
      train(ranks, config_of(place, name, ranks));
      CHECK((saved_state(place.checkpoint(name, kSteps)) == straight));
    }
  }
}

TEST_CASE("averages go on where they were on another number of ranks") {
  const ToyPlace place;
  train(2, config_of(place, "run", 2), {.stop_at_step = 7});
  train(3, config_of(place, "run", 3, 2), {.stop_at_step = 9});
  train(1, config_of(place, "run", 1));
  check_averages(place, "run");
}

TEST_CASE("averages that a checkpoint lacks begin in the run, and those that the config lacks are dropped") {
  const ToyPlace place;
  train(2, without_averages(config_of(place, "run", 2)), {.stop_at_step = 7});
  RunConfig config = config_of(place, "run", 2);
  log::configure(0, 1, log::Level::kInfo);
  {
    CapturedLog captured;
    train(2, config, {.stop_at_step = 10});
    for (const char* name : {"ema", "mean"}) {
      CHECK_THAT(captured.text(), Catch::Contains(str("average ", name, ": not begun in ")));
    }
  }
  const ToyState added = saved_state(place.checkpoint("run", 10));
  CHECK((added.run.averages == Progress{{"ema", 2, 10}, {"mean", 3, 10}}));
  CHECK(difference(of_kind(added, "average/mean"), sum_of(place, "run", mean_shares(8, 10))) < 1e-6);
  CHECK(difference(of_kind(added, "average/ema"), sum_of(place, "run", exponential_shares({8, 10}))) < 1e-6);

  config.averages.erase(config.averages.begin());
  {
    CapturedLog captured;
    train(2, config, {.stop_at_step = 11});
    CHECK_THAT(captured.text(), Catch::Contains("average ema of ") && Catch::Contains(": not in this config, dropped"));
  }
  log::configure(0, 1, log::Level::kOff);
  const ToyState dropped = saved_state(place.checkpoint("run", 11));
  CHECK((dropped.run.averages == Progress{{"mean", 4, 11}}));
  CHECK(of_kind(dropped, "average/ema").empty());
  CHECK(difference(of_kind(dropped, "average/mean"), sum_of(place, "run", mean_shares(8, 11))) < 1e-6);

  train(2, config_of(place, "run", 2));  // ema begins a second time: nothing of the first is left
  const ToyState again = saved_state(place.checkpoint("run", kSteps));
  CHECK((again.run.averages == Progress{{"ema", 1, 12}, {"mean", 5, 12}}));
  CHECK(difference(of_kind(again, "average/ema"), of_kind(again, "master")) == 0);
}

TEST_CASE("another interval after a resume changes later updates alone") {
  const ToyPlace place;
  train(1, config_of(place, "run"), {.stop_at_step = 7});
  RunConfig config = config_of(place, "run");
  config.averages[0].every = 3;
  config.averages[1].every = 4;
  train(1, config);
  const ToyState saved = saved_state(place.checkpoint("run", kSteps));
  CHECK((saved.run.averages == Progress{{"mean", 4, 11}, {"ema", 5, 12}}));
  CHECK(difference(of_kind(saved, "average/ema"), sum_of(place, "run", exponential_shares({2, 4, 6, 9, 12}))) < 1e-6);
  CHECK(difference(of_kind(saved, "average/mean"),
                   sum_of(place, "run", {{5, 0.25}, {6, 0.25}, {7, 0.25}, {11, 0.25}})) < 1e-6);
}

TEST_CASE("an optimizer that starts over keeps the averages, which are weights") {
  const ToyPlace place;
  train(1, config_of(place, "run"), {.stop_at_step = 7});
  RunConfig config = config_of(place, "run");
  config.optimizer.name = "muon";
  config.checkpoint.allow_changes = {"optimizer"};
  train(1, config);
  check_averages(place, "run");
}

TEST_CASE("averages have their own validation loss from their first update on, and validating changes no bit") {
  const ToyPlace place;
  for (const Precision compute : {Precision::kF32, Precision::kBF16}) {
    for (const int ranks : {1, 2, 3}) {
      const std::string name = str(compute == Precision::kF32 ? "f32-" : "bf16-", ranks);
      INFO(name);
      RunConfig config = config_of(place, name, ranks), rare = config_of(place, name + "-rare", ranks);
      config.precision.compute = rare.precision.compute = compute;
      config.training.validation_interval = 1;
      train(ranks, config);
      train(ranks, rare);
      CHECK((saved_state(place.checkpoint(name, kSteps)) == saved_state(place.checkpoint(name + "-rare", kSteps))));
      const auto live = records(place.run(name), "validation/loss");
      const auto ema = records(place.run(name), "validation/loss_ema"),
                 mean = records(place.run(name), "validation/loss_mean");
      CHECK((live.size() == kSteps && ema.size() == kSteps - 1 && mean.size() == kSteps - 4));
      CHECK((ema.at(2) == live.at(2) && mean.at(5) == live.at(5)));  // the weights of that step themselves
      CHECK((ema.at(3) == ema.at(2) && ema.at(4) != ema.at(3) && ema.at(4) != live.at(4)));

      // A new model with the weights of the average.
      Backend backend = toy_backend();
      const auto comm = make_single_comm();
      RunConfig complete = config;
      complete_from_data(complete);
      complete.data.order = SampleOrder::kSequential;
      Engine engine(engine_options(complete, {.max_tokens = 16, .max_length = 16, .training = false}), *comm, backend);
      engine.commit();
      CheckpointReader reader = CheckpointReader::open(place.checkpoint(name, kSteps));
      reader.use_average("ema");
      HostState state(engine);
      load(*comm, reader, state.place(), state.slices());
      state.push();
      const SampleSource held_out(complete.data, complete.data.validation, 7, 61);
      CHECK(mean_loss(engine, held_out, {.sequences = 5}, [] {}) == Approx(ema.at(kSteps)).epsilon(1e-6));
    }
  }
}

TEST_CASE("an average that a checkpoint lacks is refused, with those that it has") {
  const ToyPlace place;
  train(1, config_of(place, "run"), {.stop_at_step = 3});
  CheckpointReader reader = CheckpointReader::open(place.checkpoint("run", 3));
  for (const char* name : {"emma", "mean", "master", ""}) {  // mean has not begun
    try {
      reader.use_average(name);
      FAIL(name << " was accepted");
    } catch (const Error& error) {
      CHECK(error.kind() == Kind::kCheckpoint);
      CHECK_THAT(error.what(), Catch::Contains(str("has no average '", name, "' of the weights")));
      CHECK(error.hint() == "it has ema");
    }
  }
}

TEST_CASE("averages are 4 bytes a weight of host memory, and as many of each checkpoint") {
  const ToyPlace place;
  const RunConfig config = config_of(place, "run");
  CHECK(planned_bytes_of(config, "average/") == 2 * planned_bytes_of(config, "parameters/master"));
  CHECK(planned_bytes_of(config, "snapshot/average/ema") == planned_bytes_of(config, "parameters/master"));
  CHECK(planned_bytes_of(without_averages(config), "average/") == 0);
  CHECK(planned_bytes_of(config, "average/", PlanFor::kBenchmark) == 0);
}

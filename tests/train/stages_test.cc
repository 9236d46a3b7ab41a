// Sharding and recompute change memory and traffic, never a result. Whole runs with ranks as threads equal one
// rank's, for every stage, way to reduce, number of gathered layers, recompute mode and mesh, set or chosen.
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <set>
#include <tuple>

#include "base/file.h"
#include "checkpoint/reader.h"
#include "plan/auto_choice.h"
#include "support/kept.h"
#include "train/run_data.h"
#include "train/toy_training.h"

using namespace tokamak;

namespace {

constexpr int64_t kSteps = 10;
constexpr double kMaxUnitNorm = 0.3;  // of gradients: some units are clipped at each step

struct Sharing {
  int ranks = 1;
  int64_t replicas = 1;
  int64_t stage = 3;
  ReduceWhen reduce = ReduceWhen::kAuto;
  AutoLimit kept = AutoLimit::none();

  bool reduces_once() const { return stage == 1 || reduce == ReduceWhen::kLastMicrobatch; }
  std::string text() const {
    return str(ranks / replicas, " x ", replicas, " ranks, stage ", stage, reduces_once() ? ", last" : ", every",
               "_microbatch, keep_gathered ", kept.is_auto() ? "auto" : str(kept.value));
  }
};

// Every combination that a config may have, for four layers, with the replicas of 2 x 2 and 1 x 2 meshes.
std::vector<Sharing> all_sharings() {
  std::vector<Sharing> all;
  for (const auto& [ranks, replicas] : {std::pair{1, 1}, {2, 1}, {2, 2}, {4, 1}, {4, 2}}) {
    all.push_back({ranks, replicas, 1});
    for (const ReduceWhen reduce : {ReduceWhen::kEveryMicrobatch, ReduceWhen::kLastMicrobatch}) {
      all.push_back({ranks, replicas, 2, reduce});
      for (const int64_t kept : {0, 1, 4, -1}) all.push_back({ranks, replicas, 3, reduce, AutoLimit{kept}});
    }
  }
  return all;
}

// Three micro-batches a step on any number of ranks.
RunConfig config_of(const ToyPlace& place, const std::string& name, const Sharing& sharing,
                    RecomputeMode recompute = RecomputeMode::kNone) {
  RunConfig config = place.config(name, sharing.ranks);
  config.model.num_hidden_layers = 4;
  config.training.max_steps = kSteps;
  config.training.max_unit_grad_norm = kMaxUnitNorm;
  config.training.micro_batch_size.value = 12 / sharing.ranks / 3;
  config.activation_checkpoint.mode = recompute;
  if (recompute == RecomputeMode::kSelective) config.activation_checkpoint.kept_layers = {3, 1, 0, 2, 1, 3, 2};
  config.parallelism.zero_stage = sharing.stage;
  config.parallelism.reduce = sharing.reduce;
  config.parallelism.keep_gathered = sharing.kept;
  config.parallelism.data_parallel_replicate_degree = sharing.replicas;
  return config;
}

// A device with memory for half of what the program may choose to keep, for each rank of this one node.
class HalfFilledDevice : public ToyDevice {
 public:
  HalfFilledDevice(const RunConfig& config, int ranks) {
    RunConfig complete = config;
    complete_from_data(complete);
    const GlobalBatch batch = make_global_batch(complete, ranks);
    const AutoChoice all{.micro_batch = batch.sequences_per_rank,
                         .keep_gathered = complete.model.num_hidden_layers,
                         .kept = kept_in(complete.model.num_hidden_layers - 1)};
    int64_t bytes = 0;
    for (const AutoChoice& choice : {least_choice(complete), all}) {
      const DryRun run(with_choice(complete, choice), batch, ranks);
      bytes += planned_bytes(run.memory(), run.device()) / 2;
    }
    const int64_t read_ahead = read_ahead_bytes(complete, batch.sequences_per_rank);
    bytes_ = (bytes + bytes / 7 + 1 + read_ahead) * ranks;  // an eighth stays free
  }
  int64_t total_bytes() const override { return bytes_; }
  int64_t available_bytes() const override { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

// Uses a HalfFilledDevice if the config leaves something to choose.
ToyRunOptions options_of(const RunConfig& config, int ranks, int64_t stop_at_step = 0) {
  ToyRunOptions options{.stop_at_step = stop_at_step};
  if (!leaves_choice(config)) return options;
  options.backend = [config, ranks]() -> Backend {
    return {std::make_unique<HalfFilledDevice>(config, ranks), std::make_unique<CpuOps>()};
  };
  return options;
}

// Losses and gradient norms of the reference, one rank of stage 3.
struct Reference {
  explicit Reference(const ToyPlace& place) {
    train(1, config_of(place, "reference", {}));
    losses = records(place.run("reference"));
    norms = records(place.run("reference"), "optim/grad_norm");
    REQUIRE(losses.size() == kSteps);
    REQUIRE(losses.at(kSteps) < losses.at(1) - 0.3);          // it learns
    REQUIRE(norms.at(kSteps) < kMaxUnitNorm * std::sqrt(7));  // embedding, head, norms and four layers
  }
  std::map<int64_t, double> losses, norms;
};

// The choice of auto keys that a run recorded.
std::vector<double> chosen_of(const std::string& run) {
  const MetricRecord ready = last_event(run, "ready");
  std::vector<double> values;
  for (const char* name : {"micro_batch_size", "keep_gathered"}) values.push_back(ready.at(str("chosen/", name)));
  for (const char* tensor : kDecoderKeptNames) values.push_back(ready.at(str("chosen/kept_layers/", tensor)));
  return values;
}

constexpr RecomputeMode kModes[] = {RecomputeMode::kNone, RecomputeMode::kFull, RecomputeMode::kSelective,
                                    RecomputeMode::kAuto};

// Checks every way to share, with every recompute mode, on meshes of `ranks` ranks.
void check_losses(const std::set<int>& ranks) {
  const ToyPlace place;
  const Reference reference(place);
  // Runs that sum in the same order. They keep different tensors, but all their bits are equal.
  std::map<std::tuple<int, int64_t, bool>, ToyState> same;
  std::set<std::vector<double>> chosen;
  int number = 0;
  for (const Sharing& sharing : all_sharings()) {
    if (!ranks.contains(sharing.ranks)) continue;
    for (const RecomputeMode recompute : kModes) {
      const std::string name = str("run", ++number);
      INFO(sharing.text() << ", recompute " << enum_names(recompute)[static_cast<size_t>(recompute)]);
      const RunConfig config = config_of(place, name, sharing, recompute);
      CHECK(train(sharing.ranks, config, options_of(config, sharing.ranks)) == RunEnd::kDone);
      if (leaves_choice(config)) chosen.insert(chosen_of(place.run(name)));
      CHECK(worst_difference(records(place.run(name)), reference.losses) < 1e-5);
      CHECK(worst_difference(records(place.run(name), "optim/grad_norm"), reference.norms) < 1e-4);
      const ToyState state = saved_state(place.checkpoint(name, kSteps));
      const auto [known, is_new] = same.try_emplace({sharing.ranks, sharing.replicas, sharing.reduces_once()}, state);
      if (!is_new) CHECK((state == known->second));
    }
  }
  CHECK(chosen.size() >= 3);  // the choice depends on the memory
}

}  // namespace

TEST_CASE("every stage and reduction on 1 and 2 ranks, by every recompute mode: the losses of one rank", "[large]") {
  check_losses({1, 2});
}

TEST_CASE("every stage and reduction on 4 ranks and on 2 x 2, by every recompute mode: the losses of one rank",
          "[large]") {
  check_losses({4});
}

TEST_CASE("a run goes on by any other stage, reduction, recompute mode and mesh from what one has saved", "[large]") {
  const ToyPlace place;
  const Reference reference(place);
  std::vector<Sharing> writers = all_sharings(), readers = writers;
  std::mt19937 random(16);
  std::shuffle(writers.begin(), writers.end(), random);
  std::shuffle(readers.begin(), readers.end(), random);
  for (size_t i = 0; i < writers.size(); ++i) {  // each sharing writes once and reads once
    const int64_t step = 1 + static_cast<int64_t>(random() % (kSteps - 1));
    const RecomputeMode before = kModes[random() % 4], after = kModes[random() % 4];
    INFO(writers[i].text() << " until step " << step << ", then " << readers[i].text());
    const std::string first = str("first", i), second = str("second", i);
    RunConfig config = config_of(place, first, writers[i], before);
    CHECK(train(writers[i].ranks, config, options_of(config, writers[i].ranks, step)) == RunEnd::kStopped);
    const std::string saved = place.checkpoint(first, step);
    CHECK(CheckpointReader::open(saved).manifest().files.size() ==
          static_cast<size_t>(writers[i].ranks / writers[i].replicas));
    config = config_of(place, second, readers[i], after);
    config.checkpoint.load = saved;
    if (leaves_choice(config)) config.training.micro_batch_size = {};
    CHECK(train(readers[i].ranks, config, options_of(config, readers[i].ranks)) == RunEnd::kDone);
    auto expected = reference.losses;
    std::erase_if(expected, [&](const auto& loss) { return loss.first <= step; });
    CHECK(worst_difference(records(place.run(second)), expected) < 1e-5);
  }
}

TEST_CASE("a run that stops and goes on by the same stage ends with the bits of one that does not stop") {
  const ToyPlace place;
  int number = 0;
  for (const Sharing& sharing :
       {Sharing{4, 2, 3, ReduceWhen::kLastMicrobatch, {1}}, Sharing{2, 2, 2}, Sharing{2, 1, 1}}) {
    INFO(sharing.text());
    const std::string straight = str("straight", ++number), halves = str("halves", number);
    CHECK(train(sharing.ranks, config_of(place, straight, sharing)) == RunEnd::kDone);
    CHECK(train(sharing.ranks, config_of(place, halves, sharing), {.stop_at_step = 4}) == RunEnd::kStopped);
    CHECK(train(sharing.ranks, config_of(place, halves, sharing)) == RunEnd::kDone);
    CHECK((saved_state(place.checkpoint(halves, kSteps)) == saved_state(place.checkpoint(straight, kSteps))));
  }
}

TEST_CASE("overlap changes when the ranks exchange, and no bit") {
  const ToyPlace place;
  int number = 0;
  for (const Sharing& sharing : {Sharing{4, 2, 3}, Sharing{4, 2, 2}, Sharing{3, 1, 3}, Sharing{2, 1, 1}}) {
    INFO(sharing.text());
    std::vector<ToyState> states;
    for (const bool overlap : {true, false}) {
      const std::string name = str("run", ++number);
      RunConfig config = config_of(place, name, sharing);
      config.parallelism.overlap = overlap;
      config.training.validation_interval = 3;  // between steps whose gathers are under way
      config.checkpoint.interval = TrainingLength::steps(2);
      CHECK(train(sharing.ranks, config) == RunEnd::kDone);
      states.push_back(saved_state(place.checkpoint(name, kSteps)));
    }
    CHECK((states[0] == states[1]));
  }
}

TEST_CASE("bf16 on the way between ranks and replicas rounds, and trains") {
  const ToyPlace place;
  const Reference reference(place);
  int number = 0;
  for (const Sharing& sharing : {Sharing{4, 2, 3}, Sharing{2, 2, 1}, Sharing{4, 1, 1}}) {
    INFO(sharing.text());
    const std::string name = str("run", ++number);
    RunConfig config = config_of(place, name, sharing);
    config.precision.reduce = Precision::kBF16;
    CHECK(train(sharing.ranks, config) == RunEnd::kDone);
    const double worst = worst_difference(records(place.run(name)), reference.losses);
    CHECK(worst < 1e-2);
    CHECK(worst > 1e-7);  // something was rounded
  }
}

TEST_CASE("replicas that do not divide the ranks are refused before anything is made") {
  const ToyPlace place;
  RunConfig config = place.config("run", 2);
  config.parallelism.data_parallel_replicate_degree = 3;
  const SharedError error = error_of(2, config);
  CHECK(error.exit_code() == 2);
  CHECK_THAT(error.what(),
             Catch::Contains("parallelism.data_parallel_replicate_degree is 3, which does not divide the 2"));
  CHECK(!exists(place.run("run")));
}

TEST_CASE("units below a layer give the same bits in every stage, recompute mode and mesh, also going on from layers") {
  const ToyPlace place;
  int number = 0;
  const std::vector<Sharing> sharings = {{1, 1},
                                         {2, 1, 2},
                                         {2, 1, 3, ReduceWhen::kLastMicrobatch, AutoLimit{1}},
                                         {3, 1, 3},
                                         {4, 2, 3, ReduceWhen::kEveryMicrobatch}};
  for (const Sharing& sharing : sharings) {
    for (const RecomputeMode mode : {RecomputeMode::kNone, RecomputeMode::kSelective, RecomputeMode::kFull}) {
      INFO(sharing.text() << ", recompute " << enum_names(mode)[static_cast<size_t>(mode)]);
      const auto config = [&](const char* name, UnitSize unit) {
        RunConfig made = config_of(place, str(name, number), sharing, mode);
        made.training.max_grad_norm = 0;  // the norm's squares are summed in the order of the shard, in f32 at first
        made.parallelism.unit = unit;
        return made;
      };
      const auto state = [&](const char* name) { return saved_state(place.checkpoint(str(name, number), kSteps)); };
      ++number;
      train(sharing.ranks, config("layer", UnitSize::kLayer));
      train(sharing.ranks, config("projection", UnitSize::kProjection));
      train(sharing.ranks, config("both", UnitSize::kLayer), {.stop_at_step = 4});
      train(sharing.ranks, config("both", UnitSize::kProjection));
      const ToyState expected = state("layer");
      CHECK((state("projection") == expected));
      CHECK((state("both") == expected));
    }
  }
}

TEST_CASE("with clipping, units below a layer give the same losses but for the rounding of the norm") {
  const ToyPlace place;
  for (const UnitSize unit : {UnitSize::kLayer, UnitSize::kProjection}) {
    RunConfig config = config_of(place, enum_names(unit)[static_cast<size_t>(unit)], {2, 1});
    config.training.max_grad_norm = 0.1;
    config.parallelism.unit = unit;
    train(2, config);
  }
  CHECK(worst_difference(records(place.run("projection")), records(place.run("layer"))) < 1e-6);
  CHECK(records(place.run("layer")).at(kSteps) < records(place.run("layer")).at(1));
}

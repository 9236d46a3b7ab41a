// Compares the chosen values of the auto keys with every combination that a config may name, by the same simulator.
// They fit the available memory, and are the same on every rank.
#include "plan/auto_choice.h"

#include <catch2/catch.hpp>
#include <limits>
#include <set>

#include "base/error.h"
#include "model/toy_layer.h"
#include "plan/small_run.h"
#include "support/kept.h"
#include "support/ranks.h"
#include "train/memory_check.h"

using namespace tokamak;

namespace {

RunConfig auto_run(BackendKind backend) {
  RunConfig config = small_run();
  config.runtime.backend = backend;
  config.training.micro_batch_size = {};
  config.parallelism.keep_gathered = {};
  config.activation_checkpoint.mode = RecomputeMode::kAuto;
  return config;
}

// A machine slow enough at everything that each choice matters.
Machine machine_for(BackendKind backend) {
  if (backend == BackendKind::kCpu) return cpu_machine();
  Machine machine = find_machine("a100-40");
  machine.bf16_flops = 2e10;
  machine.memory_rate = 1e10;
  machine.link_rate = 2e9;
  machine.launch_seconds = 1e-7;
  return machine;
}

int64_t bytes_of(const RunConfig& config, const GlobalBatch& batch, int ranks) {
  const DryRun run(config, batch, ranks);
  return planned_bytes(run.memory(), run.device());
}

struct Tried {
  int64_t bytes;
  double seconds;
};

// Simulates every micro-batch, number of gathered layers and list of kept layers.
std::vector<Tried> try_all(const RunConfig& config, const GlobalBatch& batch, int ranks, const Machine& machine) {
  const int64_t most = config.model.num_hidden_layers - 1;
  std::vector<Tried> all;
  AutoChoice choice;
  for (choice.micro_batch = 1; choice.micro_batch <= batch.sequences_per_rank; ++choice.micro_batch) {
    if (batch.sequences_per_step % choice.micro_batch != 0) continue;
    for (choice.keep_gathered = 0; choice.keep_gathered <= config.model.num_hidden_layers; ++choice.keep_gathered) {
      int64_t code = 0, rest = 0;
      while (rest == 0) {
        rest = code++;
        for (size_t tensor = 0; tensor < kDecoderKept; ++tensor) {
          choice.kept[tensor] = rest % (most + 1);
          rest /= most + 1;
        }
        if (rest > 0) break;
        const RunConfig tried = with_choice(config, choice);
        all.push_back({bytes_of(tried, batch, ranks), predict(tried, batch, ranks, machine).step_seconds});
      }
    }
  }
  return all;
}

// Returns the smallest memory of which a plan may fill `bytes`.
int64_t enough_for(int64_t bytes, const Machine& machine) {
  int64_t enough = bytes;
  while (fillable_bytes(enough, machine.cpu) < bytes) ++enough;
  return enough;
}

}  // namespace

TEST_CASE("the choice is the best of every combination that fits", "[one-thread]") {
  const BackendKind backend = GENERATE(BackendKind::kCpu, BackendKind::kCuda);
  RunConfig config = auto_run(backend);
  config.model.num_hidden_layers = 2;  // 128 lists of kept layers
  config.parallelism.reduce = ReduceWhen::kEveryMicrobatch;
  const Machine machine = machine_for(backend);
  const int ranks = 2;
  const GlobalBatch batch = small_batch(ranks, 4);
  const int64_t least = bytes_of(with_choice(config, least_choice(config)), batch, ranks);
  const AutoChoice all{.micro_batch = 4, .keep_gathered = 2, .kept = kept_in(1)};
  const int64_t most = bytes_of(with_choice(config, all), batch, ranks);
  REQUIRE(least < most);
  const std::vector<Tried> all_tried = try_all(config, batch, ranks, machine);
  std::set<std::pair<int64_t, int64_t>> chosen;  // micro-batch and gathered layers
  for (const double share : {0.0, 0.03, 0.2, 0.55, 1.0}) {
    const auto bytes = least + static_cast<int64_t>(share * static_cast<double>(most - least));
    INFO((backend == BackendKind::kCpu ? "CPU, " : "GPU, ") << share << " of what there is to choose");
    double fastest = std::numeric_limits<double>::infinity();
    for (const Tried& one : all_tried) {
      if (one.bytes <= bytes) fastest = std::min(fastest, one.seconds);
    }
    const Candidates found = candidates(config, batch, ranks, machine, enough_for(bytes, machine));
    CHECK(found.bytes == bytes);
    REQUIRE(!found.fitting.empty());
    const AutoChoice& choice = found.fitting[0].choice;
    const RunConfig settled = with_choice(config, choice);
    CHECK(bytes_of(settled, batch, ranks) <= bytes);
    CHECK(!leaves_choice(settled));
    CHECK(choice.predicted_seconds == predict(settled, batch, ranks, machine).step_seconds);
    CHECK(choice.predicted_seconds == Approx(fastest).epsilon(1e-12));
    chosen.insert({choice.micro_batch, choice.keep_gathered});
  }
  CHECK(chosen.size() > 2);
}

TEST_CASE("with reduce: auto the choice is the better of those of both answers", "[one-thread]") {
  std::set<bool> chosen;
  for (const BackendKind backend : {BackendKind::kCpu, BackendKind::kCuda}) {
    RunConfig config = auto_run(backend);
    config.training.micro_batch_size = {1};
    const Machine machine = machine_for(backend);
    const int ranks = 2;
    const GlobalBatch batch = small_batch(ranks, 4);
    const int64_t least = bytes_of(with_choice(config, least_choice(config)), batch, ranks);
    for (const double share : {1.0, 1.1, 1.3, 2.0, 4.0}) {
      INFO((backend == BackendKind::kCpu ? "CPU, " : "GPU, ") << share << " times the least bytes");
      const int64_t bytes = enough_for(static_cast<int64_t>(share * static_cast<double>(least)), machine);
      double fastest = std::numeric_limits<double>::infinity();
      for (const ReduceWhen reduce : {ReduceWhen::kEveryMicrobatch, ReduceWhen::kLastMicrobatch}) {
        config.parallelism.reduce = reduce;
        const Candidates found = candidates(config, batch, ranks, machine, bytes);
        if (!found.fitting.empty()) fastest = std::min(fastest, found.fitting[0].choice.predicted_seconds);
      }
      config.parallelism.reduce = ReduceWhen::kAuto;
      const Candidates found = candidates(config, batch, ranks, machine, bytes);
      REQUIRE(!found.fitting.empty());
      const AutoChoice& choice = found.fitting[0].choice;
      CHECK(choice.predicted_seconds <= fastest * (1 + kWorthTrying));
      CHECK(choice.predicted_seconds >= fastest);
      chosen.insert(choice.reduce_once);
    }
  }
  CHECK(chosen.size() == 2);
}

TEST_CASE("keys that are not auto stay as they are, and those that are take the best beside them", "[one-thread]") {
  RunConfig config = auto_run(BackendKind::kCpu);
  const GlobalBatch batch = small_batch(2, 4);
  Machine machine = cpu_machine();
  const auto best = [&] { return candidates(config, batch, 2, machine, INT64_MAX).fitting.at(0); };
  CHECK(best().choice.kept == kept_in(2));  // without a limit nothing is recomputed
  config.training.micro_batch_size = {2};
  config.parallelism.keep_gathered = {1};
  CHECK(best().choice.micro_batch == 2);
  CHECK(with_choice(config, best().choice).parallelism.keep_gathered == AutoLimit{1});
  config.parallelism.keep_gathered = {};
  config.activation_checkpoint.mode = RecomputeMode::kFull;
  CHECK(with_choice(config, best().choice).activation_checkpoint.mode == RecomputeMode::kFull);
  CHECK(best().prediction.kept == KeptLayers{});
  machine.network_rate /= 100;  // a layer's gathers take longer than the computation that they overlap
  CHECK(best().choice.keep_gathered > 0);
}

TEST_CASE(
    "one rank gathers nothing, and a lower stage has nothing to keep: only recompute and micro-batch are chosen") {
  RunConfig config = auto_run(BackendKind::kCpu);
  for (const Candidate& one : candidates(config, small_batch(1, 4), 1, cpu_machine(), INT64_MAX).fitting) {
    CHECK(one.choice.keep_gathered == 0);
  }
  config.parallelism.zero_stage = 2;
  config.parallelism.reduce = ReduceWhen::kEveryMicrobatch;
  config.parallelism.keep_gathered = AutoLimit::none();
  const Candidates found = candidates(config, small_batch(2, 4), 2, cpu_machine(), INT64_MAX);
  CHECK(found.fitting.size() == 3);  // micro-batches of 1, 2 and 4
}

TEST_CASE("gradients are reduced once a step where that is faster, fits, and is left to the program") {
  RunConfig config = auto_run(BackendKind::kCpu);
  config.training.micro_batch_size = {1};
  config.parallelism.keep_gathered = {3};
  const GlobalBatch batch = small_batch(2, 4);
  Machine machine = cpu_machine();
  const auto best = [&](int64_t bytes = INT64_MAX) {
    return candidates(config, batch, 2, machine, bytes).fitting.at(0).choice;
  };
  const auto chosen = [&] { return with_choice(config, best()).parallelism.reduce; };
  const auto tries_once = [&] {
    const Candidates all = candidates(config, batch, 2, machine, INT64_MAX);
    return std::any_of(all.fitting.begin(), all.fitting.end(), [](const auto& one) { return one.choice.reduce_once; });
  };
  machine.network_rate = machine.link_rate = 1e13;
  machine.hop_seconds = 0;
  const Candidate hidden = candidates(config, batch, 2, machine, INT64_MAX).fitting.at(0);
  REQUIRE(hidden.prediction.exposed_communication_seconds > 0);
  CHECK(!tries_once());
  CHECK(chosen() == ReduceWhen::kAuto);
  machine = cpu_machine();
  machine.link_rate /= 100;
  machine.network_rate /= 100;
  CHECK(chosen() == ReduceWhen::kLastMicrobatch);
  CHECK_THAT(text_of(config, best()), Catch::Contains("parallelism.reduce last_microbatch"));
  const int64_t least = bytes_of(with_choice(config, least_choice(config)), batch, 2);
  CHECK(!best(enough_for(least, machine)).reduce_once);

  config.parallelism.reduce = ReduceWhen::kEveryMicrobatch;
  CHECK(chosen() == ReduceWhen::kEveryMicrobatch);
  CHECK(!tries_once());
  config.parallelism.reduce = ReduceWhen::kAuto;
  config.training.micro_batch_size = {4};  // the only micro-batch of a step
  CHECK(!tries_once());
}

TEST_CASE("of micro-batches that make as many pieces the smallest is tried") {
  RunConfig config = auto_run(BackendKind::kCpu);
  config.parallelism.keep_gathered = AutoLimit::none();
  const auto tried = [&](int64_t sequences) {
    std::set<int64_t> sizes;
    for (const Candidate& one : candidates(config, small_batch(2, sequences), 2, cpu_machine(), INT64_MAX).fitting) {
      sizes.insert(one.choice.micro_batch);
    }
    return sizes;
  };
  CHECK((tried(6) == std::set<int64_t>{1, 2, 3, 6}));  // 4 would make pieces of 4 and 2
  CHECK((tried(7) == std::set<int64_t>{1, 2, 7}));
}

TEST_CASE("what keeping a tensor saves is what a simulated step is shorter by, where nothing overlaps",
          "[one-thread]") {
  RunConfig config = auto_run(BackendKind::kCpu);
  config.parallelism.overlap = false;
  const bool two_kinds = GENERATE(false, true);
  if (two_kinds) {
    config.model.num_hidden_layers = 6;
    config.model.pattern = {&kDecoderLayer, &kToyLayer};
  }
  const GlobalBatch batch = small_batch(2, 6);
  const Machine machine = cpu_machine();
  const PerKeptTensor<KeepCost> costs = keep_seconds(config, batch, 2, 2, machine);
  const auto seconds = [&](const KeptLayers& kept) {
    AutoChoice choice{.micro_batch = 2, .keep_gathered = 0, .kept = kept};
    return predict(with_choice(config, choice), batch, 2, machine).step_seconds;
  };
  const double nothing = seconds({});
  const std::vector<KeptTensor> tensors = kept_tensors(config.model);
  REQUIRE(tensors.size() == (two_kinds ? 15 : 7));
  for (size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    KeptLayers kept;
    kept[tensor] = 2;
    INFO(tensors[tensor].name);
    CHECK(costs[tensor].spared > 0);
    CHECK(nothing - seconds(kept) == Approx(2 * costs[tensor].spared).epsilon(1e-9));
  }
}

TEST_CASE("a start chooses its micro-batch by all memory, and the rest by what is available", "[one-thread]") {
  const GlobalBatch batch = small_batch(2, 4);
  ChoiceInputs inputs{.config = auto_run(BackendKind::kCpu),
                      .batch = batch,
                      .ranks = 2,
                      .ranks_per_node = 2,
                      .device = "CPU",
                      .total = int64_t{1} << 30,
                      .available = int64_t{1} << 30};
  const ExplainedChoice all = choose(inputs);
  CHECK(all.micro_batch > 1);
  CHECK(all.kept == kept_in(2));
  CHECK_THAT(all.why, Catch::Contains("a step predicted by the rates of cpu"));
  RunConfig tight = with_choice(inputs.config, {.micro_batch = all.micro_batch});
  inputs.available = (bytes_of(tight, batch, 2) + 100) * 8 / 7;
  const AutoChoice less = choose(inputs);
  CHECK(less.micro_batch == all.micro_batch);
  CHECK(bytes_of(with_choice(inputs.config, less), batch, 2) <= inputs.available);
  CHECK(!(less.kept == all.kept));
  inputs.total = inputs.available = 1000;
  CHECK(choose(inputs).micro_batch == 1);
  CHECK_THAT(choose(inputs).why, Catch::Contains("nothing fits"));
}

TEST_CASE("a start that reduces gradients once, by all memory, does so with less of it, too: the bits depend on it",
          "[one-thread]") {
  RunConfig config = auto_run(BackendKind::kCuda);
  config.training.micro_batch_size = {1};
  const int ranks = 16;
  const GlobalBatch batch = small_batch(ranks, 4);
  ChoiceInputs inputs{.config = config,
                      .batch = batch,
                      .ranks = ranks,
                      .ranks_per_node = 1,
                      .device = "GPU 0, NVIDIA H100 80GB HBM3",
                      .total = int64_t{1} << 34,
                      .available = int64_t{1} << 34};
  const AutoChoice all = choose(inputs);
  CHECK(all.reduce_once);
  inputs.available = bytes_of(with_choice(config, {.micro_batch = 1, .reduce_once = true}), batch, ranks);
  const AutoChoice less = choose(inputs);
  CHECK(less.reduce_once);
  CHECK(less.kept == KeptLayers{});
  inputs.available -= 1;
  REQUIRE(bytes_of(with_choice(config, {.micro_batch = 1}), batch, ranks) <= inputs.available);
  CHECK(choose(inputs).reduce_once);
  CHECK_THAT(choose(inputs).why, Catch::Contains("nothing fits"));
}

TEST_CASE(
    "rates are those of runtime.machine, or of the device's row, or there is an error that says how to get them") {
  CHECK(machine_of({}, "CPU, AMD EPYC, 2 threads").name == "cpu");
  CHECK(machine_of({}, "GPU 0, NVIDIA H100 80GB HBM3, 79.6 GiB, compute capability 9.0").name == "h100");
  CHECK(machine_of({}, "GPU 1, NVIDIA A100-SXM4-40GB, 39.4 GiB").name == "a100-40");
  RuntimeOptions runtime;
  runtime.machine = "b200";
  CHECK(machine_of(runtime, "CPU").name == "b200");
  runtime.machine = "b20";
  CHECK_THROWS_WITH(machine_of(runtime, "CPU"), Catch::Contains("no GPU 'b20'"));
  try {
    machine_of({}, "GPU 0, NVIDIA T4, 15 GiB");
    FAIL("no row");
  } catch (const Error& error) {
    CHECK(error.kind() == Kind::kConfig);
    CHECK_THAT(error.hint(), Catch::Contains("runtime.machine") && Catch::Contains("bench calibrate"));
  }
}

RANKS_CASE("every rank takes what rank 0 chooses, and its error") {
  ChoiceInputs inputs{.config = auto_run(BackendKind::kCpu),
                      .batch = small_batch(2, 4),
                      .ranks = 2,
                      .ranks_per_node = 2,
                      .device = "CPU",
                      .total = int64_t{1} << 30,
                      .available = int64_t{1} << 30};
  const AutoChoice expected = choose(inputs);
  if (world.rank() > 0) inputs.device = "no such machine";  // only rank 0 may choose, or this would throw
  const AutoChoice choice = choose_collectively(world.comm(), inputs);
  CHECK(choice.micro_batch == expected.micro_batch);
  CHECK(choice.keep_gathered == expected.keep_gathered);
  CHECK(choice.reduce_once == expected.reduce_once);
  CHECK((choice.kept == expected.kept));
  CHECK(choice.predicted_seconds == expected.predicted_seconds);
  inputs.device = world.rank() > 0 ? "CPU" : "no such machine";
  CHECK_THROWS_WITH(choose_collectively(world.comm(), inputs), Catch::Contains("no such machine"));
}

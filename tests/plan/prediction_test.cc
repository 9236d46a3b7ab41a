// Compares predictions with the whole simulated step, the plan of memory, and known formulas at scale.
#include "plan/prediction.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "plan/reliability.h"
#include "plan/search.h"
#include "plan/small_run.h"
#include "train/auto_choice.h"

using namespace tokamak;

namespace {

RunConfig gpu_run() {
  RunConfig config = small_run();
  config.runtime.backend = BackendKind::kCuda;
  return config;
}

}  // namespace

TEST_CASE("many micro-batches are predicted as long as the whole step takes, which is not simulated") {
  const Machine machine = find_machine("h100");
  for (const int ranks : {1, 4, 16}) {
    for (const int64_t sequences : {int64_t{8}, int64_t{40}}) {
      INFO(ranks << " ranks, " << sequences << " sequences");
      const RunConfig config = gpu_run();
      const GlobalBatch batch = small_batch(ranks, sequences);
      DryRun run(config, batch, ranks);
      const StepRecord whole = run.record();
      const SimulatedStep step = simulate(whole, costs_of(whole, machine, run.ops()),
                                          {.contention = machine.efficiency.contention, .steps = 2});
      const Prediction predicted = predict(config, batch, ranks, machine);
      CHECK(predicted.shape.micro_batches() == sequences / 2);
      CHECK(predicted.step_seconds == Approx(step.seconds).epsilon(1e-9));
      CHECK(predicted.exposed_communication_seconds == Approx(step.exposed_communication).epsilon(1e-9).margin(1e-15));
      CHECK(predicted.flops == Approx(whole.flops()).epsilon(1e-12));
      CHECK(predicted.exchanged == Approx(whole.exchanged()).epsilon(1e-12));
    }
  }
}

TEST_CASE("runtime.attention: native predicts a slower step where its rate is lower") {
  RunConfig config = gpu_run();
  const GlobalBatch batch = small_batch(1, 2);
  const Machine machine = find_machine("h100");
  const double fast = predict(config, batch, 1, machine).terms.attention;
  config.runtime.attention = AttentionKind::kNative;
  CHECK(predict(config, batch, 1, machine).terms.attention > fast);
}

TEST_CASE("a search finds only what fits, the fastest first, and of a mode that does not fit what takes least",
          "[one-thread]") {
  const RunConfig config = gpu_run();
  const GlobalBatch batch = small_batch(2, 6);
  Machine machine = find_machine("a100-40");
  const int64_t whole = machine.memory_bytes;
  const Choices all = search(config, batch, 2, machine);
  REQUIRE(all.fitting.size() == 3 * 4 * 4);  // stages, recompute modes, micro-batches of 1, 2, 3 and 6
  CHECK(all.others.empty());
  for (size_t i = 1; i < all.fitting.size(); ++i) {
    CHECK(all.fitting[i - 1].step_seconds <= all.fitting[i].step_seconds);
  }
  int64_t least = INT64_MAX, most = 0;
  for (const Prediction& p : all.fitting) {
    least = std::min(least, p.peak_bytes_per_rank);
    most = std::max(most, p.peak_bytes_per_rank);
    CHECK(p.available_bytes == machine.plannable_bytes());
    CHECK(p.free_bytes == whole - p.peak_bytes_per_rank);
  }
  // Plans must fit into the memory without the free share, here less than a byte above the largest plan.
  machine.free_share = 1 - (double(most) + 0.5) / double(whole);
  CHECK(search(config, batch, 2, machine).fitting.size() == all.fitting.size());
  machine.free_share = 1 - (double(most) - 1.5) / double(whole);
  CHECK(search(config, batch, 2, machine).fitting.size() < all.fitting.size());
  machine = machine.with_memory(most - 1);
  const Choices fewer = search(config, batch, 2, machine);
  CHECK(fewer.fitting.size() < all.fitting.size());
  for (const Prediction& p : fewer.fitting) CHECK(p.peak_bytes_per_rank < most);
  machine.memory_bytes = least / 2;  // even units of a projection do not fit
  const Choices none = search(config, batch, 2, machine);
  CHECK(none.fitting.empty());
  REQUIRE(none.others.size() == 4);
  for (const Prediction& p : none.others) {
    CHECK(p.shape.micro_batch == 1);
    CHECK(!p.fits());
  }
}

TEST_CASE("a prediction says what it is worth: by published runs, by what was measured, or not at all") {
  const std::string published = "within 4.9 % of half of 150 published runs, within 18.2 % of nine in ten";
  CHECK(accuracy_of(find_machine("a100-80")) == published);
  Machine machine = find_machine("h100");
  CHECK(accuracy_of(machine) == published + "; kernels as measured on an H100, not as fitted on those runs");
  machine.measured.push_back({.name = "rmsnorm", .bytes = 1, .seconds = 1});
  CHECK_THAT(accuracy_of(machine), Catch::Contains("measured there"));
  CHECK_THAT(accuracy_of(cpu_machine()), Catch::Contains("not measured"));
}

TEST_CASE("a search tries each stage among all ranks, and within 1, 2, 4, ... nodes with copies across",
          "[one-thread]") {
  const auto copies_of = [](int ranks) {
    std::set<std::pair<int64_t, int64_t>> ways;
    for (const Prediction& p : search(gpu_run(), small_batch(ranks, 1), ranks, find_machine("a100-40")).fitting) {
      ways.insert({p.parallelism.zero_stage, p.parallelism.data_parallel_replicate_degree});
    }
    std::set<int64_t> copies;
    for (const auto& [stage, degree] : ways) copies.insert(degree);
    CHECK(ways.size() == 3 * copies.size());
    return copies;
  };
  CHECK(copies_of(8) == std::set<int64_t>{1});
  CHECK(copies_of(12) == std::set<int64_t>{1});
  CHECK(copies_of(24) == std::set<int64_t>{1, 3});
  CHECK(copies_of(64) == std::set<int64_t>{1, 2, 4, 8});
}

TEST_CASE("where no layer fits twice, a search finds units of a projection, and says so in its lines of YAML",
          "[one-thread]") {
  RunConfig config = gpu_run();
  config.model.intermediate_size = 200'000;
  config.model.num_hidden_layers = 12;  // stages 1 and 2 keep them all
  const GlobalBatch batch = small_batch(16, 1);
  Machine machine = find_machine("a100-40");
  const auto bytes_with = [&](UnitSize unit) {
    RunConfig least = with_choice(config, least_choice(config));
    least.activation_checkpoint.mode = RecomputeMode::kFull;
    least.parallelism.unit = unit;
    return predict(least, batch, 16, machine).peak_bytes_per_rank;
  };
  const int64_t layer = bytes_with(UnitSize::kLayer), projection = bytes_with(UnitSize::kProjection);
  REQUIRE(projection < layer);
  const double usable = static_cast<double>(machine.plannable_bytes()) / static_cast<double>(machine.memory_bytes);
  machine.memory_bytes = static_cast<int64_t>(static_cast<double>(layer + projection) / 2 / usable);
  const Choices found = search(config, batch, 16, machine);
  REQUIRE(!found.fitting.empty());
  for (const Prediction& p : found.fitting) CHECK(p.parallelism.unit == UnitSize::kProjection);
  CHECK_THAT(yaml_of(found.fitting.front()), Catch::Contains("unit: projection"));
  machine.memory_bytes /= 2;
  for (const Prediction& p : search(config, batch, 16, machine).others) {
    CHECK(p.parallelism.unit == UnitSize::kProjection);  // units of least memory
  }
}

TEST_CASE("failures, checkpoints and their best interval are those of the sources at Llama 3's scale") {
  const Reliability r = reliability_of(12 * 405'000'000'000, 16384, 8, true);
  CHECK(r.mttf_seconds == Approx(54 * 86400.0 / 419));  // one failure in 3.1 hours
  CHECK(r.checkpoint_bytes == 4.86e12);
  CHECK(r.write_seconds == Approx(4.86e12 / 2048 / 2e9));
  CHECK(r.stall_seconds == Approx(4.86e12 / 16384 / 20e9));
  CHECK(r.best_interval_seconds == Approx(std::sqrt(2 * r.stall_seconds * r.mttf_seconds)));
  CHECK(expected_ettr(100, 1, 50, 1000) == Approx(1 - 0.01 - 0.1));
  CHECK(expected_ettr(100, 1, 5000, 1000) == 0);
  for (const double factor : {0.5, 0.9, 1.1, 2.0}) {
    CHECK(expected_ettr(factor * r.best_interval_seconds, r.stall_seconds, 600, r.mttf_seconds) < r.ettr);
  }
  const Reliability waits = reliability_of(12 * 405'000'000'000, 16384, 8, false);
  CHECK(waits.stall_seconds == waits.write_seconds);
  CHECK(waits.ettr < r.ettr);
}

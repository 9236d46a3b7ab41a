// metrics.tensor_statistics of whole runs, against the checkpoints of the same steps. Weights are the masters there,
// and updates the difference of two. With beta1 = 0 the first moment is the gradient that the optimizer was given.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "monitor/jsonl.h"
#include "train/toy_training.h"

using namespace tokamak;

namespace {

constexpr int64_t kSteps = 6;

// Returns records by step. If a step was trained again, it returns the later one.
std::map<int64_t, MetricRecord> tensor_records_of(const std::string& run) {
  std::map<int64_t, MetricRecord> records;
  const auto see = [&](const MetricRecord& record) {
    if (!record.tensors.empty()) records[record.step] = record;
  };
  read_records(run + "/tensors.jsonl", see, ReadTensors::kYes);
  return records;
}

// Computes the summary of f32 values in a simple way, in double.
TensorSummary summary_of(const std::vector<float>& values) {
  TensorSummary summary{.min = INFINITY, .max = -INFINITY};
  std::map<int, int64_t> counts;
  double squares = 0;
  for (const float x : values) {
    if (!std::isfinite(x)) {
      ++summary.non_finite;
      continue;
    }
    squares += static_cast<double>(x) * x;
    summary.min = std::min<double>(summary.min, x);
    summary.max = std::max<double>(summary.max, x);
    if (x == 0) {
      ++summary.zeros;
    } else {
      ++counts[std::clamp(std::ilogb(x), kLowestMagnitude, 14)];  // the bins of ops.h
    }
  }
  summary.rms = std::sqrt(squares / (static_cast<double>(values.size()) - static_cast<double>(summary.non_finite)));
  if (counts.empty()) return summary;
  summary.first = counts.begin()->first;
  for (int exponent = summary.first; exponent <= counts.rbegin()->first; ++exponent) {
    summary.counts.push_back(counts[exponent]);
  }
  return summary;
}

void check_same(const TensorSummary& found, const TensorSummary& expected) {
  CHECK(found.rms == Approx(expected.rms).epsilon(1e-12));
  CHECK(static_cast<float>(found.min) == static_cast<float>(expected.min));  // records print f32 in the shortest digits
  CHECK(static_cast<float>(found.max) == static_cast<float>(expected.max));
  CHECK(found.non_finite == expected.non_finite);
  CHECK(found.zeros == expected.zeros);
  CHECK(found.first == expected.first);
  CHECK(found.counts == expected.counts);
}

RunConfig watched(const ToyPlace& place, const std::string& name, int ranks, int64_t interval) {
  RunConfig config = place.config(name, ranks);
  config.metrics.tensor_statistics = interval;
  config.metrics.activation_statistics.interval = 0;
  config.checkpoint.interval = TrainingLength::steps(1);
  config.checkpoint.keep_latest = 0;
  config.optimizer.betas = {0, 0.95};
  config.training.max_grad_norm = 0;
  return config;
}

// The record is of a step after the first, so there is a checkpoint before it.
void check_against_checkpoints(const ToyPlace& place, const std::string& name, const MetricRecord& record) {
  const ToyState before = saved_state(place.checkpoint(name, record.step - 1));
  const ToyState after = saved_state(place.checkpoint(name, record.step));
  size_t masters = 0;
  for (const auto& [key, values] : after.tensors) masters += key.first == "master" ? 1 : 0;
  CHECK(record.tensors.size() == masters);
  for (const TensorRecord& tensor : record.tensors) {
    INFO("step " << record.step << ", " << tensor.name);
    const std::vector<float>& weights = after.tensors.at({"master", tensor.name});
    std::vector<float> updates = weights;
    for (size_t i = 0; i < updates.size(); ++i) updates[i] -= before.tensors.at({"master", tensor.name})[i];
    CHECK(tensor.elements == std::ssize(weights));
    check_same(tensor.at("weights"), summary_of(weights));
    check_same(tensor.at("updates"), summary_of(updates));
    check_same(tensor.at("gradients"), summary_of(after.tensors.at({"exp_avg", tensor.name})));
    for (const char* moment : {"exp_avg", "exp_avg_sq"}) {
      check_same(tensor.at(moment), summary_of(after.tensors.at({moment, tensor.name})));
    }
    CHECK(tensor.update_ratio() == Approx(summary_of(updates).rms / summary_of(weights).rms).epsilon(1e-12));
  }
}

}  // namespace

TEST_CASE("statistics of tensors are those of the checkpoint, on any ranks, replicas and stage, in bf16 too") {
  const ToyPlace place;
  struct Variant {
    int ranks;
    int64_t replicas, stage;
    Precision compute;
  };
  int number = 0;
  for (const Variant& variant : {Variant{1, 1, 3, Precision::kF32}, Variant{2, 1, 3, Precision::kBF16},
                                 Variant{3, 1, 2, Precision::kF32}, Variant{4, 2, 1, Precision::kF32}}) {
    INFO(variant.ranks << " ranks, stage " << variant.stage);
    const std::string name = str("run", ++number);
    RunConfig config = watched(place, name, variant.ranks, 2);
    config.parallelism.data_parallel_replicate_degree = variant.replicas;
    config.parallelism.zero_stage = variant.stage;
    config.precision.compute = variant.compute;
    config.model.qkv_bias = variant.ranks == 4;
    train(variant.ranks, config);
    const auto records = tensor_records_of(place.run(name));
    REQUIRE(records.size() == 3);
    for (const int64_t step : {2, 4, 6}) {
      check_against_checkpoints(place, name, records.at(step));
      CHECK(tokamak::records(place.run(name), "time/tensor_statistics").at(step) > 0);
    }
  }
}

TEST_CASE("gradients are measured before they are clipped") {
  const ToyPlace place;
  train(2, watched(place, "plain", 2, 1));
  RunConfig config = watched(place, "clipped", 2, 1);
  config.training.max_grad_norm = 1e-3;
  train(2, config);
  const MetricRecord plain = tensor_records_of(place.run("plain")).at(1);
  const MetricRecord clipped = tensor_records_of(place.run("clipped")).at(1);
  double squares = 0;
  for (size_t i = 0; i < plain.tensors.size(); ++i) {
    CHECK(clipped.tensors[i].at("gradients").rms == plain.tensors[i].at("gradients").rms);
    squares += static_cast<double>(plain.tensors[i].elements) * std::pow(plain.tensors[i].at("gradients").rms, 2);
  }
  CHECK(records(place.run("clipped"), "optim/grad_norm").at(1) == Approx(std::sqrt(squares)).epsilon(1e-6));
}

TEST_CASE("a run's bits are the same with statistics at every step, at some and at none") {
  const ToyPlace place;
  for (const int ranks : {1, 2}) {
    for (const Precision compute : {Precision::kF32, Precision::kBF16}) {
      ToyState without;
      for (const int64_t interval : {0, 1, 4}) {
        const std::string name = str("run", ranks, static_cast<int>(compute), interval);
        RunConfig config = place.config(name, ranks);
        config.precision.compute = compute;
        config.metrics.tensor_statistics = config.metrics.activation_statistics.interval = interval;
        config.resilience.verify_state = true;
        train(ranks, config);
        const ToyState state = saved_state(place.checkpoint(name, kSteps));
        std::vector<int64_t> steps;
        for (const auto& [step, record] : tensor_records_of(place.run(name))) steps.push_back(step);
        if (interval == 0) {
          without = state;
          CHECK(steps.empty());
          continue;
        }
        CHECK((state == without));
        CHECK(steps == (interval == 1 ? std::vector<int64_t>{1, 2, 3, 4, 5, 6} : std::vector<int64_t>{4, 6}));
      }
    }
  }
}

TEST_CASE("statistics are in the memory plan, and take nothing where there are none") {
  const ToyPlace place;
  const auto planned = [&](int64_t interval) {
    RunConfig config = place.config("run");
    config.metrics.tensor_statistics = interval;
    return planned_bytes_of(config, "tensor statistics/");
  };
  CHECK(planned(0) == 0);
  CHECK(planned(1) > 0);
  CHECK(planned(1000) == planned(1));
}

TEST_CASE("a resumed run goes on with the same statistics") {
  const ToyPlace place;
  train(2, watched(place, "straight", 2, 2));
  train(2, watched(place, "halves", 2, 2), {.stop_at_step = 3});
  train(2, watched(place, "halves", 2, 2));
  const auto straight = tensor_records_of(place.run("straight")), halves = tensor_records_of(place.run("halves"));
  REQUIRE(straight.size() == 3);
  REQUIRE(halves.size() == 3);
  const std::string text = read_text(place.run("halves") + "/tensors.jsonl", Kind::kBug);
  CHECK_THAT(text, Catch::Contains("{\"event\":\"resume\",\"step\":3,"));
  CHECK(read_text(place.run("halves") + "/metrics.jsonl", Kind::kBug).find("tensors") == std::string::npos);
  for (const auto& [step, record] : straight) {
    for (size_t i = 0; i < record.tensors.size(); ++i) {
      check_same(halves.at(step).tensors[i].at("weights"), record.tensors[i].at("weights"));
      check_same(halves.at(step).tensors[i].at("gradients"), record.tensors[i].at("gradients"));
      check_same(halves.at(step).tensors[i].at("updates"), record.tensors[i].at("updates"));
    }
  }
}

TEST_CASE("where a step is not finite the record says in which gradients, and that nothing was updated") {
  const ToyPlace place;
  RunConfig config = watched(place, "run", 2, 1);
  config.checkpoint.interval = TrainingLength::none();
  config.optimizer.lr = 1e38;  // the first step makes the weights so large that the second step overflows
  config.lr_scheduler.warmup = TrainingLength::none();
  config.resilience.max_bad_steps = 3;
  error_of(2, config);
  const auto records = tensor_records_of(place.run("run"));
  REQUIRE(records.size() >= 3);
  int64_t bad = 0;
  for (const auto& [step, record] : records) {
    int64_t gradients = 0, updates = 0;
    for (const TensorRecord& tensor : record.tensors) {
      gradients += tensor.at("gradients").non_finite;
      updates += tensor.elements - tensor.at("updates").zeros;
    }
    if (gradients > 0) ++bad;
    CHECK((gradients > 0) == (updates == 0));
  }
  CHECK(bad >= 2);
}

TEST_CASE("the statistics of an abandoned step are not taken for those of a step trained again") {
  const ToyPlace place;
  const auto changed = [&](const std::string& name) {
    RunConfig config = watched(place, name, 1, 1);
    config.training.evals = {{}};
    config.training.evals_interval = 2;
    return config;
  };
  Engine* engine = nullptr;
  ToyRunOptions options;
  options.evals = [&](Engine& one, const std::function<void()>&) {
    engine = &one;
    return std::vector<NamedValue>();
  };
  int64_t calls = 0;
  options.stragglers = [&]() -> std::vector<Straggler> {
    // Called after each step and before each save. The sixth call is after step 3, whose outcome is not read yet.
    if (++calls == 6) throw SharedError(Kind::kBug, "an end within the run");
    return {};
  };
  options.run = [&](World& world, Trainer& trainer) {
    CHECK_THROWS_AS(trainer.run(), SharedError);
    CheckpointReader reader = CheckpointReader::open(place.checkpoint("run", 2));
    load_weights(world.comm(), reader, *engine);
    trainer.go_to(reader.manifest().point.state);
    return trainer.run();
  };
  CHECK(train(1, changed("run"), options) == RunEnd::kDone);
  train(1, changed("straight"));
  const auto again = tensor_records_of(place.run("run")), straight = tensor_records_of(place.run("straight"));
  REQUIRE(again.size() == straight.size());
  for (const auto& [step, record] : straight) {
    for (size_t i = 0; i < record.tensors.size(); ++i) {
      CHECK(again.at(step).tensors[i].at("weights").rms == record.tensors[i].at("weights").rms);
    }
  }
}

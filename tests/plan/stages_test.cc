// The cost of stages, kept layers and replicas, planned for any number of ranks. Memory by name and bytes exchanged in
// a step are each checked against a formula.
#include <catch2/catch.hpp>

#include "base/strings.h"
#include "comm/exchange.h"
#include "model/parameters.h"
#include "plan/dry_run.h"
#include "plan/small_run.h"
#include "tensor/unit_layout.h"

using namespace tokamak;

namespace {

constexpr int64_t kLayers = 5;
constexpr int64_t kSequences = 6;  // of a rank, in three micro-batches
constexpr int64_t kMicroBatches = 3;

struct Sharing {
  int shards;
  int replicas;
  int64_t stage = 3;
  ReduceWhen reduce = ReduceWhen::kAuto;
  int64_t kept = 0;
  Precision reduce_in = Precision::kF32;
  MomentType moments = MomentType::kF32;

  bool reduces_once() const { return stage == 1 || reduce == ReduceWhen::kLastMicrobatch; }
  int64_t kept_layers() const { return stage < 3 ? kLayers : kept; }
  int64_t shared_layers() const { return kLayers - kept_layers(); }
  std::string text() const {
    return str(shards, " x ", replicas, " ranks, stage ", stage, reduces_once() ? ", last" : ", every",
               "_microbatch, keep_gathered ", kept, ", reduced in ", reduce_in == Precision::kBF16 ? "bf16" : "f32",
               moments == MomentType::kBF16 ? ", bf16 moments" : "");
  }
};

std::vector<Sharing> all_sharings() {
  std::vector<Sharing> all;
  for (const auto& [shards, replicas] : {std::pair{1, 1}, {2, 1}, {4, 1}, {2, 2}, {1, 2}, {8, 3}, {1, 64}}) {
    for (const Precision reduce_in : {Precision::kF32, Precision::kBF16}) {
      all.push_back({shards, replicas, 1, ReduceWhen::kAuto, 0, reduce_in});
      for (const ReduceWhen reduce : {ReduceWhen::kEveryMicrobatch, ReduceWhen::kLastMicrobatch}) {
        all.push_back({shards, replicas, 2, reduce, 0, reduce_in});
        for (const int64_t kept : {0, 1, 3, 4, 5}) all.push_back({shards, replicas, 3, reduce, kept, reduce_in});
        all.push_back({shards, replicas, 3, reduce, 0, reduce_in, MomentType::kBF16});
      }
    }
  }
  return all;
}

RunConfig config_of(const Sharing& sharing) {
  RunConfig config = small_run();
  config.model.num_hidden_layers = kLayers;
  config.precision.reduce = sharing.reduce_in;
  config.optimizer.moments = sharing.moments;
  config.parallelism.zero_stage = sharing.stage;
  config.parallelism.reduce = sharing.reduce;
  config.parallelism.keep_gathered = {sharing.kept};
  config.parallelism.data_parallel_replicate_degree = sharing.replicas;
  return config;
}

DryRun dry_run(const Sharing& sharing) {
  const int ranks = sharing.shards * sharing.replicas;
  return {config_of(sharing), small_batch(ranks, kSequences), ranks};
}

// Elements of one rank's slices, padding included.
struct Slices {
  explicit Slices(const Sharing& sharing) {
    for (const Unit& unit : make_param_table(config_of(sharing).model).units) {
      const int64_t grain = UnitLayout::kAlignment * sharing.replicas;
      const int64_t slice = (UnitLayout(unit).count + sharing.shards * grain - 1) / (sharing.shards * grain) * grain;
      all += slice;
      largest = std::max(largest, slice);
      if (unit.kind == UnitKind::kLayer) layer = slice;
      if (unit.kind == UnitKind::kNorms) norms = slice;
      if (unit.kind == UnitKind::kEmbedding) embedding = slice;
      if (unit.kind == UnitKind::kHead) head = slice;
    }
  }
  int64_t all = 0, largest = 0, layer = 0, norms = 0, embedding = 0, head = 0;
  // The buffers for whole units, except the layers'. If layers share theirs, embedding and head share one, too.
  int64_t others(bool layers_share) const {
    return norms + (layers_share ? std::max(embedding, head) : embedding + head);
  }
};

constexpr int64_t kWeight = 2, kGradient = 4;  // bytes of an element: bf16, f32

int64_t size_in(const Sharing& sharing) { return sharing.reduce_in == Precision::kBF16 ? 2 : 4; }

// Returns bytes by the first two parts of a buffer's name, without numbers: "gradients/layer".
std::map<std::string, int64_t> planned_bytes_of(const MemoryPlan& plan) {
  std::map<std::string, int64_t> bytes;
  for (const auto& entry : plan.entries()) bytes[entry.name.substr(0, entry.name.find('.'))] += entry.bytes();
  return bytes;
}

// The gathers in a step of all layers that share a buffer. Forward and backward each find the two layers that the other
// pass has left.
int64_t gathers_of_shared(int64_t layers) { return layers <= 2 ? layers : 2 + kMicroBatches * 2 * (layers - 2); }

double exchanged_expected(const Sharing& s) {
  const Slices slices(s);
  // Embedding and head, where they share a buffer, displace each other in each micro-batch.
  const int64_t gathered = slices.norms +
                           (slices.embedding + slices.head) * (s.shared_layers() > 0 ? kMicroBatches : 1) +
                           slices.layer * (s.kept_layers() + gathers_of_shared(s.shared_layers()));
  const int64_t times = s.reduces_once() ? 1 : kMicroBatches;
  const int64_t reduced = slices.norms + (slices.all - slices.norms) * times;
  // Over the replicas each slice travels once each way: reduced in the reduce dtype, then gathered in f32.
  const int64_t part = slices.all / s.replicas;
  return static_cast<double>((s.shards - 1) * (gathered * kWeight + reduced * size_in(s)) +
                             (s.replicas - 1) * part * (size_in(s) + kGradient) +
                             (s.shards * s.replicas - 1) * kStepSums * static_cast<int64_t>(sizeof(double)));
}

}  // namespace

TEST_CASE("memory by class is what the stage keeps whole and what it shards") {
  for (const Sharing& sharing : all_sharings()) {
    INFO(sharing.text());
    const DryRun run = dry_run(sharing);
    auto bytes = planned_bytes_of(run.memory());
    const Slices slices(sharing);
    CHECK(bytes["parameters/master"] == 4 * slices.all);
    CHECK(bytes["parameters/compute copy"] == kWeight * slices.all);
    const int64_t moment = sharing.moments == MomentType::kBF16 ? 2 : 4;
    CHECK(bytes["optimizer/exp_avg"] == moment * slices.all);
    CHECK(bytes["optimizer/exp_avg_sq"] == moment * slices.all);
    CHECK(bytes["gradients/slices"] == kGradient * slices.all);
    const bool whole = sharing.shards == 1;
    const int64_t units = whole ? 0 : sharing.shards;  // ranks among which a unit is sliced
    const int64_t weights = sharing.kept_layers() + std::min(sharing.shared_layers(), int64_t{2});
    CHECK(bytes["gathered weights/layer"] == kWeight * units * slices.layer * weights);
    const auto beside_layers = [&](const std::string& group) {
      return bytes[group + "/vocabulary"] + bytes[group + "/embedding"] + bytes[group + "/head"] +
             bytes[group + "/norms"];
    };
    CHECK(beside_layers("gathered weights") == kWeight * units * slices.others(sharing.shared_layers() > 0));
    CHECK(bytes["gradients/layer"] == kGradient * units * slices.layer * (sharing.reduces_once() ? kLayers : 2));
    CHECK(beside_layers("gradients") == kGradient * units * slices.others(!sharing.reduces_once()));
    CHECK(bytes["gradients/reduced"] == (whole || sharing.reduces_once() ? 0 : kGradient * slices.largest));
    const int64_t inside = whole ? 0 : host_scratch_elements(sharing.shards, slices.largest);
    const int64_t across =
        sharing.replicas == 1 ? 0 : host_scratch_elements(sharing.replicas, slices.largest / sharing.replicas);
    CHECK(bytes["gradients/communication"] == size_in(sharing) * std::max(inside, across));
  }
}

TEST_CASE("sharded state falls as one over the shard group, and replicas do not make it smaller") {
  const auto state = [](const Sharing& sharing) {
    const DryRun run = dry_run(sharing);
    auto bytes = planned_bytes_of(run.memory());
    return bytes["parameters/master"] + bytes["parameters/compute copy"] + bytes["gradients/slices"] +
           bytes["optimizer/exp_avg"] + bytes["optimizer/exp_avg_sq"];
  };
  for (const int64_t stage : {1, 2, 3}) {
    const int64_t whole = state({1, 1, stage});
    for (const int shards : {2, 4, 8}) {
      for (const int replicas : {1, 3}) {
        INFO("stage " << stage << ", " << shards << " x " << replicas);
        // The formula leaves out the padding, which is less than a grain for each unit.
        const int64_t padding = 18 * UnitLayout::kAlignment * replicas * (kLayers + 3);
        const int64_t share = state({shards, replicas, stage});
        CHECK(share >= whole / shards - padding);
        CHECK(share <= whole / shards + padding);
      }
    }
  }
}

TEST_CASE("a step exchanges what gathers, reductions and replicas take, by every stage", "[one-thread]") {
  for (const Sharing& sharing : all_sharings()) {
    INFO(sharing.text());
    DryRun run = dry_run(sharing);
    REQUIRE(run.shape().micro_batches() == kMicroBatches);
    CHECK(run.record().exchanged() == exchanged_expected(sharing));
  }
}

TEST_CASE("a lower stage takes more memory and less traffic") {
  const auto cost = [](const Sharing& sharing) {
    DryRun run = dry_run(sharing);
    const int64_t memory = run.memory().total_bytes();
    return std::pair{memory, run.record().exchanged()};
  };
  const auto [memory3, exchanged3] = cost({4, 1, 3});
  const auto [memory2, exchanged2] = cost({4, 1, 2});
  const auto [memory1, exchanged1] = cost({4, 1, 1});
  CHECK((memory3 < memory2 && memory2 < memory1));
  CHECK((exchanged3 > exchanged2 && exchanged2 > exchanged1));
  const auto [memory_kept, exchanged_kept] = cost({4, 1, 3, ReduceWhen::kAuto, 1});
  CHECK((memory3 < memory_kept && memory_kept < memory2));
  CHECK((exchanged3 > exchanged_kept && exchanged_kept > exchanged2));
}

TEST_CASE("a plan for ranks that the replicas do not divide is refused") {
  CHECK_THROWS_WITH(DryRun(config_of({1, 3}), small_batch(4, kSequences), 4),
                    Catch::Contains("parallelism.data_parallel_replicate_degree is 3"));
}

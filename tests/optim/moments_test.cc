// bf16 moments: the bits of a step do not depend on how many ranks share the state, by which policy, or where a run was
// interrupted.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <mutex>

#include "base/rng.h"
#include "base/strings.h"
#include "optim/optimizer.h"
#include "support/ranks.h"
#include "tensor/unit_layout.h"

using namespace tokamak;

namespace {

Param matrix(const std::string& name, int64_t rows, int64_t columns) { return {name, Shape{rows, columns}, 0, 0.5}; }

// Nothing is a multiple of anything; the norms are so small that some ranks have padding alone.
ParamTable uneven_table() {
  ParamTable table;
  table.units.push_back({UnitKind::kEmbedding, "embedding", {{"embedding", {matrix("embedding", 61, 7)}}}});
  for (int l = 0; l < 2; ++l) {
    const std::string name = str("layer.", l);
    table.units.push_back(
        {UnitKind::kLayer,
         name,
         {{"qkv", {matrix(name + ".q", 25, 7), matrix(name + ".k", 3, 7)}}, {"o", {matrix(name + ".o", 37, 5)}}}});
  }
  table.units.push_back({UnitKind::kHead, "head", {{"head", {matrix("head", 61, 7)}}}});
  table.units.push_back({UnitKind::kNorms, "norms", {{"norm", {{"norm", Shape{7}, 1.0, 0.0, Decay::kNo}}}}});
  return table;
}

// State of all ranks, unit by unit in their flat order, without padding at the end of units.
struct WholeState {
  std::vector<float> master;
  std::vector<uint16_t> exp_avg, exp_avg_sq, weights;

  bool operator==(const WholeState&) const = default;
};

struct Split {
  int ranks = 1;
  int replicas = 1;
  ShardingPolicy policy = {};

  std::string text() const { return str(ranks, " ranks, ", replicas, " replicas, overlap ", policy.overlap); }
};

struct Steps {
  int64_t first = 1, last = 5;
  uint64_t seed = 3;
  int64_t gradients = 0;  // those of this step in all; 0: of each its own
};

// The state after these steps, from the weights' initial values or from `start`. Gradients are a function of the step
// and the element. Padding has gradients, too.
WholeState run(const Split& split, const Steps& steps, const WholeState* start = nullptr) {
  const ParamTable table = uneven_table();
  WholeState whole;
  std::mutex access;
  on_threads(split.ranks, [&](World& world) {
    const MeshGroups groups(world.comm(), split.replicas);
    Backend backend = make_cpu_backend();
    const auto stream = backend.device->make_stream();
    MemoryPlan plan;
    ShardedParameters parameters(table, groups.mesh(), backend, {.policy = split.policy}, plan);
    const auto optimizer = make_optimizer({.moments = MomentType::kBF16}, steps.seed, parameters, plan);
    const auto control_slot = plan.add("control", DType::kF32, Shape{kStepControls});
    const Arena arena(plan, *backend.device);
    parameters.commit(arena);
    optimizer->commit(arena);
    const Tensor exp_avg = optimizer->state()[0].tensor, exp_avg_sq = optimizer->state()[1].tensor;
    parameters.initialize(1, *stream);
    backend.ops->fill(*stream, {.x = arena[control_slot], .value = 1});  // kApply and kGradScale

    // body(element of the whole state, element of the shard) for what this rank has and is no padding
    const auto each = [&](const auto& body) {
      size_t unit_begin = 0;
      for (size_t u = 0; u < table.units.size(); ++u) {
        const auto unit = static_cast<int64_t>(u);
        const int64_t count = UnitLayout(table.units[u]).count, slice = parameters.slice_elements(unit);
        const int64_t before = groups.mesh().shard().rank() * slice;
        for (int64_t i = 0; i < slice && before + i < count; ++i) {
          body(unit_begin + static_cast<size_t>(before + i), parameters.slice_begin(unit) + i);
        }
        unit_begin += static_cast<size_t>(count);
      }
      return unit_begin;
    };
    if (start != nullptr) {
      each([&](size_t from, int64_t to) {
        parameters.master().as<float>()[to] = start->master[from];
        exp_avg.as<bf16>()[to].bits = start->exp_avg[from];
        exp_avg_sq.as<bf16>()[to].bits = start->exp_avg_sq[from];
      });
      parameters.masters_changed(*stream);
    }
    for (int64_t t = steps.first; t <= steps.last; ++t) {
      const RandomStream random(5, str("gradients of step ", steps.gradients > 0 ? steps.gradients : t));
      auto* gradients = parameters.gradients().as<float>();
      std::fill_n(gradients, parameters.shard_elements(), 1.0f);
      each([&](size_t from, int64_t to) { gradients[to] = random.normal(from); });
      optimizer->step(*stream, {.t = t, .lr = 0.01, .control = arena[control_slot]});
    }
    parameters.wait_gathered(*stream);
    stream->synchronize();

    const std::lock_guard lock(access);
    std::vector<bool> padding(static_cast<size_t>(parameters.shard_elements()), true);
    const size_t elements = each([&](size_t, int64_t at) { padding[static_cast<size_t>(at)] = false; });
    whole.master.resize(elements);
    for (auto* part : {&whole.exp_avg, &whole.exp_avg_sq, &whole.weights}) part->resize(elements);
    each([&](size_t to, int64_t from) {
      whole.master[to] = parameters.master().as<float>()[from];
      whole.exp_avg[to] = exp_avg.as<bf16>()[from].bits;
      whole.exp_avg_sq[to] = exp_avg_sq.as<bf16>()[from].bits;
      whole.weights[to] = parameters.weights().as<bf16>()[from].bits;
    });
    int64_t touched = 0;
    for (size_t i = 0; i < padding.size(); ++i) {
      touched += padding[i] && (parameters.master().as<float>()[i] != 0 || exp_avg.as<bf16>()[i].bits != 0 ||
                                exp_avg_sq.as<bf16>()[i].bits != 0);
    }
    CHECK(touched == 0);
  });
  return whole;
}

std::vector<Split> splits() {
  std::vector<Split> all;
  for (const bool overlap : {true, false}) {
    for (int ranks = 1; ranks <= 4; ++ranks) all.push_back({ranks, 1, {.overlap = overlap}});
    all.push_back({2, 2, {.overlap = overlap}});
    all.push_back({4, 2, {.overlap = overlap}});
    all.push_back({3, 1, {.kept_layers = ShardingPolicy::kAllLayers, .reduce_once = true, .overlap = overlap}});
  }
  return all;
}

}  // namespace

TEST_CASE("bf16 moments: any number of ranks and replicas, by any policy, has the bits of one rank") {
  const WholeState one = run({}, {});
  for (const Split& split : splits()) {
    INFO(split.text());
    CHECK((run(split, {}) == one));
  }
}

TEST_CASE(
    "bf16 moments: a run that goes on from another number of ranks ends with the bits of one that never stopped") {
  const WholeState straight = run({}, {});
  for (const Split& before : splits()) {
    const WholeState half = run(before, {.last = 2});
    for (const Split& after : {Split{1}, Split{3}, Split{4, 2}}) {
      INFO(before.text() << ", then " << after.text());
      CHECK((run(after, {.first = 3}, &half) == straight));
    }
  }
}

TEST_CASE("bf16 moments: each step rounds otherwise, the same values too") {
  const WholeState a = run({2}, {.last = 1}), b = run({2}, {.first = 2, .last = 2, .gradients = 1});
  CHECK(a.exp_avg != b.exp_avg);
  CHECK(a.exp_avg_sq != b.exp_avg_sq);
}

TEST_CASE("bf16 moments: another seed rounds otherwise, and moves masters by little") {
  const WholeState a = run({2}, {}), b = run({2}, {.seed = 4});
  CHECK(a.exp_avg != b.exp_avg);
  CHECK(a.exp_avg_sq != b.exp_avg_sq);
  CHECK(run({2}, {.last = 1}).master == run({2}, {.last = 1, .seed = 4}).master);  // rounded after the first update
  double worst = 0;
  for (size_t i = 0; i < a.master.size(); ++i) {
    worst = std::max(worst, static_cast<double>(std::abs(a.master[i] - b.master[i])));
  }
  CHECK(worst > 0);
  CHECK(worst < 5 * 0.01);  // below the five steps of this learning rate
}

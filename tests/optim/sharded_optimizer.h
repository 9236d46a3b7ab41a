// Steps of an optimizer on a small table of weights, sharded over threads in any way; and the state of all ranks as one
// value to compare.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/strings.h"
#include "optim/optimizer.h"
#include "support/ranks.h"
#include "tensor/unit_layout.h"

namespace tokamak {

inline Param small_matrix(const std::string& name, int64_t rows, int64_t columns) {
  return {name, Shape{rows, columns}, 0, 0.5};
}

// Nothing is a multiple of anything; the norms are so small that some ranks have padding alone.
inline ParamTable uneven_table() {
  ParamTable table;
  table.units.push_back({UnitKind::kEmbedding, "embedding", {{"embedding", {small_matrix("embedding", 61, 7)}}}});
  for (int l = 0; l < 2; ++l) {
    const std::string name = str("layer.", l);
    table.units.push_back({UnitKind::kLayer,
                           name,
                           {{"qkv", {small_matrix(name + ".q", 25, 7), small_matrix(name + ".k", 3, 7)}},
                            {"o", {small_matrix(name + ".o", 37, 5)}}}});
  }
  table.units.push_back({UnitKind::kHead, "head", {{"head", {small_matrix("head", 61, 7)}}}});
  table.units.push_back({UnitKind::kNorms, "norms", {{"norm", {{"norm", Shape{7}, 1.0, 0.0, Decay::kNo}}}}});
  return table;
}

// "master", "weights" and the optimizer's state of all ranks, by name: the weights of each unit that has it, in order.
// bf16 values are f32 here.
using WholeState = std::map<std::string, std::vector<float>>;

struct Split {
  int ranks = 1;
  int replicas = 1;
  ShardingPolicy policy = {};

  std::string text() const { return str(ranks, " ranks, ", replicas, " replicas, overlap ", policy.overlap); }
};

inline std::vector<Split> all_splits() {
  std::vector<Split> all;
  for (const bool overlap : {true, false}) {
    for (int ranks = 1; ranks <= 4; ++ranks) all.push_back({ranks, 1, {.overlap = overlap}});
    all.push_back({2, 2, {.overlap = overlap}});
    all.push_back({4, 2, {.overlap = overlap}});
    all.push_back({3, 1, {.kept_layers = ShardingPolicy::kAllLayers, .reduce_once = true, .overlap = overlap}});
  }
  return all;
}

struct OptimizerSteps {
  int64_t first = 1, last = 5;
  uint64_t seed = 3;
  int64_t gradients = 0;  // those of this step in all; 0: of each its own
  double lr = 0.01;
  DType compute = DType::kBF16;
  float apply = 1;                // kApply
  float gradient = 0;             // added to all gradients
  std::vector<float> given = {};  // the gradients of all steps, instead of random ones
};

// The state after these steps, from the weights' initial values or from `start`. Gradients are a function of the step
// and the element. With bf16 moments, padding at the end of units has gradients, too, and must not be updated.
inline WholeState run_steps(const ParamTable& table, const OptimizerOptions& options, const Split& split,
                            const OptimizerSteps& steps = {}, const WholeState* start = nullptr) {
  WholeState whole;
  std::mutex access;
  const bool bf16_moments = options.moments == MomentType::kBF16;
  on_threads(split.ranks, [&](World& world) {
    const MeshGroups groups(world.comm(), split.replicas);
    Backend backend = make_cpu_backend();
    const auto stream = backend.device->make_stream();
    MemoryPlan plan;
    ShardedParameters parameters(table, groups.mesh(), backend, {.compute = steps.compute, .policy = split.policy},
                                 plan);
    const auto optimizer = make_optimizer(options, steps.seed, parameters, plan);
    const auto control = plan.add("control", DType::kF32, Shape{kStepControls});
    const Arena arena(plan, *backend.device);
    parameters.commit(arena);
    optimizer->commit(arena);
    parameters.initialize(1, *stream);
    backend.ops->fill(*stream, {.x = arena[control], .value = 1});  // kGradScale
    arena[control].as<float>()[kApply] = steps.apply;

    // body(element of the whole state, element of the tensor) for what this rank has and is no padding
    const auto each = [&](const StateTensor& state, const auto& body) {
      size_t first = 0;
      for (size_t u = 0; u < table.units.size(); ++u) {
        if (!state.units[u].is_held()) continue;
        const int64_t slice = parameters.slice_elements(static_cast<int64_t>(u));
        const int64_t before = groups.mesh().shard().rank() * slice;
        for (const FlatParam& flat : flat_params(table.units[u])) {
          for (int64_t i = std::max(flat.begin, before); i < std::min(flat.end, before + slice); ++i) {
            body(first + static_cast<size_t>(i - flat.begin), state.units[u].begin + i - before);
          }
          first += static_cast<size_t>(flat.end - flat.begin);
        }
      }
      return first;
    };
    std::vector<StateTensor> all = {state_of_all_weights("master", parameters),
                                    state_of_all_weights("weights", parameters)};
    all[0].tensor = parameters.master();
    all[1].tensor = parameters.weights();
    all.insert(all.end(), optimizer->state().begin(), optimizer->state().end());
    const auto with_elements = [](const Tensor& tensor, const auto& use) {
      if (tensor.dtype() == DType::kF32) return use(tensor.as<float>());
      use(tensor.as<bf16>());
    };
    if (start != nullptr) {
      for (const StateTensor& state : all) {
        with_elements(state.tensor, [&]<class T>(T* to) {
          each(state, [&](size_t from, int64_t at) { to[at] = from_float<T>(start->at(state.name)[from]); });
        });
      }
      parameters.masters_changed(*stream);
    }
    for (int64_t t = steps.first; t <= steps.last; ++t) {
      const RandomStream random(5, str("gradients of step ", steps.gradients > 0 ? steps.gradients : t));
      auto* gradients = parameters.gradients().as<float>();
      std::fill_n(gradients, parameters.shard_elements(), 0.0f);
      for (size_t u = 0; u < table.units.size(); ++u) {
        const int64_t slice = parameters.slice_elements(static_cast<int64_t>(u));
        const int64_t used = UnitLayout(table.units[u]).count - groups.mesh().shard().rank() * slice;
        for (int64_t i = std::max<int64_t>(used, 0); i < slice; ++i) {
          gradients[parameters.slice_begin(static_cast<int64_t>(u)) + i] = bf16_moments ? 1.0f : 0.0f;
        }
      }
      const size_t given_first = static_cast<size_t>(t - steps.first) * static_cast<size_t>(table.count());
      each(all[0], [&](size_t from, int64_t to) {
        gradients[to] = steps.given.empty() ? random.normal(from) + steps.gradient : steps.given[given_first + from];
      });
      optimizer->step(*stream, {.t = t, .lr = steps.lr, .control = arena[control]});
    }
    parameters.wait_gathered(*stream);
    stream->synchronize();

    const std::lock_guard lock(access);
    for (const StateTensor& state : all) {
      std::vector<bool> padding(static_cast<size_t>(state.tensor.count()), true);
      std::vector<float>& values = whole[state.name];
      values.resize(each(state, [&](size_t, int64_t at) { padding[static_cast<size_t>(at)] = false; }));
      int64_t touched = 0;
      with_elements(state.tensor, [&](const auto* from) {
        each(state, [&](size_t to, int64_t at) { values[to] = to_float(from[at]); });
        for (size_t i = 0; i < padding.size(); ++i) touched += padding[i] && to_float(from[i]) != 0;
      });
      CHECK(touched == 0);
    }
  });
  return whole;
}

}  // namespace tokamak

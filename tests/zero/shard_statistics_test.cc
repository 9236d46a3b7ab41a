// Statistics of tensors that lie in slices of several ranks, against those of whole tensors.
#include "zero/shard_statistics.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "base/error.h"
#include "base/rng.h"
#include "support/ranks.h"
#include "tensor/unit_layout.h"

using namespace tokamak;

namespace {

Param matrix(const std::string& name, int64_t rows, int64_t columns) { return {name, Shape{rows, columns}, 0, 0.5}; }

// Weights smaller than a slice, and across several slices; fused and not.
ParamTable odd_table() {
  ParamTable table;
  table.units.push_back({UnitKind::kEmbedding, "embedding", {{"embedding", {matrix("embedding", 131, 7)}}}});
  table.units.push_back(
      {UnitKind::kLayer, "layer.0", {{"qkv", {matrix("q", 5, 7), matrix("k", 3, 7)}}, {"o", {matrix("o", 7, 50)}}}});
  table.units.push_back({UnitKind::kNorms, "norms", {{"norm", {{"norm", Shape{7}, 1.0, 0.0, Decay::kNo}}}}});
  return table;
}

// The value of a weight's element i for one of Measured: all sizes, signs and zeros, and some that are not finite.
float value_of(Measured what, const std::string& weight, int64_t i) {
  const RandomStream random(3, str(weight, static_cast<int>(what)));
  const uint64_t word = random.word(static_cast<uint64_t>(i));
  if (word % 11 == 0) return 0;
  if (what == Measured::kGradients && word % 13 == 0) return INFINITY;
  return static_cast<float>(std::ldexp(random.normal(static_cast<uint64_t>(i)), static_cast<int>(word % 30) - 20));
}

// Writes value_of() into this rank's slices.
void fill_shard(const ShardedParameters& parameters, Measured what, Tensor shard) {
  const ParamTable& table = parameters.table();
  for (int64_t unit = 0; unit < std::ssize(table.units); ++unit) {
    const int64_t length = parameters.slice_elements(unit), first = parameters.mesh().shard().rank() * length;
    float* slice = shard.as<float>() + parameters.slice_begin(unit);
    for (const FlatParam& flat : flat_params(table.units[static_cast<size_t>(unit)])) {
      for (int64_t i = std::max(flat.begin, first); i < std::min(flat.end, first + length); ++i) {
        slice[i - first] = value_of(what, flat.param->name, i - flat.begin);
      }
    }
  }
}

TensorSums expected_sums(Measured what, const std::string& weight, int64_t elements, float scale) {
  TensorSums sums{.min = INFINITY, .max = -INFINITY};
  for (int64_t i = 0; i < elements; ++i) {
    const float x = scale * value_of(what, weight, i);
    if (!std::isfinite(x)) {
      ++sums.non_finite;
      continue;
    }
    sums.min = std::min(sums.min, static_cast<double>(x));
    sums.max = std::max(sums.max, static_cast<double>(x));
    sums.squares += static_cast<double>(x) * x;
    const int64_t bin = std::clamp<int64_t>(std::ilogb(x) - kLowestMagnitude + 1, 1, kMagnitudeBins - 1);
    ++sums.magnitudes[x == 0 ? 0 : static_cast<size_t>(bin)];
  }
  return sums;
}

}  // namespace

RANKS_CASE("each weight, gradient and update is measured once and whole, on any ranks and replicas, twice in a row") {
  const ParamTable table = odd_table();
  for (int replicas = 1; replicas <= world.size(); ++replicas) {
    if (world.size() % replicas != 0) continue;
    const MeshGroups groups(world.comm(), replicas);
    Backend backend = make_cpu_backend();
    const std::unique_ptr<Stream> stream = backend.device->make_stream();
    MemoryPlan plan;
    ShardedParameters parameters(table, groups.mesh(), backend, {.compute = DType::kBF16}, plan);
    const std::vector<StateTensor> none;
    ShardStatistics statistics(parameters, none, plan);
    const auto tokens_slot = plan.add("tokens", DType::kF64, Shape{1});
    const Arena arena(plan, *backend.device);
    parameters.commit(arena);
    statistics.commit(arena);
    const Tensor tokens = arena[tokens_slot];
    for (const double count : {7.0, 640.0}) {
      tokens.as<double>()[0] = count;
      fill_shard(parameters, Measured::kGradients, parameters.gradients());
      statistics.see_gradients(*stream, tokens);
      fill_shard(parameters, Measured::kWeights, parameters.master());
      fill_shard(parameters, Measured::kUpdates, parameters.gradients());
      statistics.see_update(*stream);
      const ShardStatistics::Result result = statistics.take();
      CHECK(result.seconds > 0);
      REQUIRE(result.weights.size() == 5);
      const char* names[] = {"embedding", "q", "k", "o", "norm"};
      for (size_t w = 0; w < result.weights.size(); ++w) {
        const WeightStatistics& weight = result.weights[w];
        REQUIRE(weight.name == names[w]);
        for (const Measured what : {Measured::kWeights, Measured::kGradients, Measured::kUpdates}) {
          const float scale = what == Measured::kGradients ? static_cast<float>(1.0 / count) : 1.0f;
          const TensorSums found = weight.of(what), expected = expected_sums(what, weight.name, weight.elements, scale);
          CHECK(found.min == expected.min);
          CHECK(found.max == expected.max);
          CHECK(std::abs(found.squares - expected.squares) <= 1e-12 * expected.squares);
          CHECK(found.non_finite == expected.non_finite);
          CHECK(found.magnitudes == expected.magnitudes);
        }
      }
    }
  }
}

RANKS_CASE("a second step without taking the first is a bug, and so is taking what was not measured") {
  const ParamTable table = odd_table();
  Backend backend = make_cpu_backend();
  const std::unique_ptr<Stream> stream = backend.device->make_stream();
  MemoryPlan plan;
  ShardedParameters parameters(table, world.comm(), backend, {}, plan);
  const std::vector<StateTensor> none;
  ShardStatistics statistics(parameters, none, plan);
  const Arena arena(plan, *backend.device);
  parameters.commit(arena);
  statistics.commit(arena);
  CHECK_THROWS_AS(statistics.take(), Error);
  statistics.see_gradients(*stream, {});
  statistics.see_update(*stream);
  CHECK_THROWS_AS(statistics.see_gradients(*stream, {}), Error);
}

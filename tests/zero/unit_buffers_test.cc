// Which units share a buffer, which unit loses its buffer, and what a pass gathers ahead.
#include "zero/unit_pass.h"

#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <utility>

#include "base/error.h"
#include "support/ranks.h"
#include "zero/sharded.h"

using namespace tokamak;

RANKS_CASE("embedding and head share a buffer where layers do, and displace each other; else each has its own") {
  ParamTable table = small_table();
  table.units.insert(table.units.end() - 1, {UnitKind::kHead, "head", {{"head", {matrix("head", 33, 7)}}}});
  constexpr int64_t kEmbedding = 0, kHead = 4;
  for (const ShardingPolicy& policy : std::vector<ShardingPolicy>{{},
                                                                  {.kept_layers = 2},
                                                                  {.kept_layers = 3},
                                                                  {.reduce_once = true},
                                                                  {.kept_layers = 3, .reduce_once = true}}) {
    Sharded s(world.comm(), DType::kBF16, policy, table);
    std::map<std::string, int64_t> buffers;
    for (const auto& entry : s.plan.entries()) buffers[entry.name.substr(0, entry.name.find('.'))] += entry.bytes();
    if (world.size() == 1) {
      CHECK(buffers.count("gathered weights/vocabulary") == 0);
      continue;
    }
    const auto elements = [&](int64_t unit) { return s.parameters.slice_elements(unit) * world.size(); };
    const bool weights_shared = policy.kept_layers < 3, gradients_shared = !policy.reduce_once;
    CHECK(buffers["gathered weights/vocabulary"] == (weights_shared ? 2 * elements(kHead) : 0));
    CHECK(buffers["gathered weights/head"] == (weights_shared ? 0 : 2 * elements(kHead)));
    CHECK(buffers["gathered weights/embedding"] == (weights_shared ? 0 : 2 * elements(kEmbedding)));
    CHECK(buffers["gradients/vocabulary"] == (gradients_shared ? 4 * elements(kHead) : 0));
    CHECK(buffers["gradients/head"] == (gradients_shared ? 0 : 4 * elements(kHead)));
    CHECK(buffers["gradients/embedding"] == (gradients_shared ? 0 : 4 * elements(kEmbedding)));
    CollectiveCount count;
    const Observation watched(*s.backend.device, count);
    for (const int64_t unit : {kEmbedding, kHead, kEmbedding}) {
      const auto whole = s.parameters.acquire(unit, *s.stream);
      CHECK(whole[0].dim(0) == (unit == kHead ? 33 : 31));
      s.parameters.release(unit);
    }
    CHECK(count.calls == (weights_shared ? 3 : 2));
    s.parameters.acquire(kEmbedding, *s.stream);
    if (weights_shared) CHECK_THROWS_AS(s.parameters.acquire(kHead, *s.stream), Error);
    s.parameters.release(kEmbedding);
    s.parameters.begin_step();
    s.parameters.gradient(kHead, *s.stream);
    if (gradients_shared) CHECK_THROWS_AS(s.parameters.gradient(kEmbedding, *s.stream), Error);
    s.parameters.reduce(kHead, *s.stream);
    s.parameters.gradient(kEmbedding, *s.stream);
    s.parameters.reduce(kEmbedding, *s.stream);
  }
}

RANKS_CASE("where a layer is several units, they share two buffers with the embedding and the head, of the largest") {
  if (world.size() == 1) return;
  ParamTable table = small_table();
  table.units.insert(table.units.end() - 1, {UnitKind::kHead, "head", {{"head", {matrix("head", 33, 7)}}}});
  table.units_per_layer = 3;
  Sharded s(world.comm(), DType::kBF16, {}, table);
  const int64_t largest = s.parameters.slice_elements(4) * world.size();
  int64_t weights = 0, gradients = 0;
  for (const auto& entry : s.plan.entries()) {
    if (entry.name == "gathered weights/shared") weights += entry.bytes();
    if (entry.name == "gradients/shared") gradients += entry.bytes();
  }
  CHECK(weights == 2 * 2 * largest);
  CHECK(gradients == 2 * 4 * largest);
  s.parameters.begin_step();
  int64_t elements = 0;  // number of gradient elements written, all 1
  for (const int64_t unit : {4, 3, 2, 1, 0}) {
    s.parameters.acquire(unit, *s.stream);
    for (const Tensor& matrix : s.parameters.gradient(unit, *s.stream).matrices) {
      s.backend.ops->fill(*s.stream, {.x = matrix, .value = 1});
      elements += matrix.count();
    }
    s.parameters.reduce(unit, *s.stream);
    s.parameters.release(unit);
  }
  s.parameters.gradient(5, *s.stream);
  s.backend.ops->fill(*s.stream, {.x = s.parameters.gradient(5, *s.stream).matrices[0], .value = 0});
  s.parameters.reduce(5, *s.stream);
  s.parameters.wait_reduced(*s.stream);
  // A buffer may still hold data of a larger unit behind a smaller one. The shard's squares are those of the matrices
  // only.
  std::array<double, kStepSums> values{};
  const Tensor sums(values.data(), DType::kF64, Shape{kStepSums});
  s.backend.ops->sum_squares(*s.stream, {.x = s.parameters.gradients(), .sums = sums});
  world.comm().all_reduce(*s.stream, sums);
  s.stream->synchronize();
  CHECK(values[kSumSquaredGradients] == static_cast<double>(elements) * world.size() * world.size());
}

RANKS_CASE("kept layers have a buffer each and are gathered once; the others share two") {
  const int ranks = world.size();
  for (const int64_t kept : {int64_t{0}, int64_t{1}, int64_t{3}, ShardingPolicy::kAllLayers}) {
    Sharded s(world.comm(), DType::kBF16, {.kept_layers = kept});
    int64_t buffers = 0;
    for (const auto& entry : s.plan.entries()) buffers += entry.name.rfind("gathered weights/layer", 0) == 0;
    CHECK(buffers == (ranks == 1 ? 0 : kept == 0 ? 2 : 3));
    if (ranks == 1) continue;
    const auto gathers = [&](const std::vector<int64_t>& units) {
      CollectiveCount count;
      const Observation watched(*s.backend.device, count);
      for (const int64_t unit : units) {
        s.parameters.acquire(unit, *s.stream);
        s.parameters.release(unit);
      }
      return count.calls;
    };
    CHECK(gathers({1, 2, 3, 2, 1}) == (kept == 0 ? 4 : 3));  // layer 0 has the buffer of layer 2
    CHECK(gathers({1, 2, 3}) == (kept == 0 ? 1 : 0));
    s.parameters.weights_changed();
    CHECK(gathers({1, 2, 3}) == 3);
  }
}

RANKS_CASE("a pass gathers the unit that comes next, and the one after it where the next keeps its buffer") {
  if (world.size() == 1) return;
  Sharded s(world.comm(), DType::kBF16);
  CallOrder order(s.parameters);
  const Observation watched(*s.backend.device, order);
  // As in backward, a unit comes again after the one that follows it: a layer recomputes its first part beforehand.
  const std::vector<int64_t> units = {3, 2, 3, 1, 2, 1, 0};
  UnitPass pass(s.parameters, *s.stream, units);
  const auto new_gathers = [&] {
    std::vector<std::string> calls = std::exchange(order.calls, {});
    for (std::string& call : calls) call = call.substr(0, call.find(" on"));
    return calls;
  };
  using Calls = std::vector<std::string>;
  CHECK(pass.use(3).size() == 2);
  CHECK((new_gathers() == Calls{"all_gather 3", "all_gather 2"}));
  pass.use(3);  // still the current one
  CHECK(new_gathers().empty());
  pass.use(2);
  CHECK(new_gathers().empty());
  pass.use(3);  // unit 1 takes the buffer of unit 2, since unit 3 is in use
  CHECK(new_gathers() == Calls{"all_gather 1"});
  pass.use(1);
  CHECK(new_gathers() == Calls{"all_gather 2"});
  pass.use(2);  // unit 1 keeps its buffer: it comes next
  CHECK(new_gathers().empty());
  pass.use(1);
  CHECK(new_gathers() == Calls{"all_gather 0"});
  pass.end();
  CHECK_THROWS_AS(pass.use(2), Error);
}

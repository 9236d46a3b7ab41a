#include "zero/sharded_parameters.h"

#include <catch2/catch.hpp>

#include "backend/cpu/device.h"
#include "base/error.h"
#include "base/rng.h"
#include "support/ranks.h"

using namespace tokamak;

namespace {

Param matrix(const std::string& name, int64_t rows, int64_t columns) { return {name, Shape{rows, columns}, 0, 0.5}; }

// Three layers, so that two buffers must be shared; nothing is a multiple of anything.
ParamTable small_table() {
  ParamTable table;
  table.units.push_back({UnitKind::kEmbedding, "embedding", {{"embedding", {matrix("embedding", 31, 7)}}}});
  for (int l = 0; l < 3; ++l) {
    const std::string name = str("layer.", l);
    table.units.push_back(
        {UnitKind::kLayer,
         name,
         {{"qkv", {matrix(name + ".q", 5, 7), matrix(name + ".k", 3, 7)}}, {"o", {matrix(name + ".o", 7, 5)}}}});
  }
  table.units.push_back({UnitKind::kNorms, "norms", {{"norm", {{"norm", Shape{7}, 1.0, 0.0, Decay::kNo}}}}});
  return table;
}

struct Sharded {
  Sharded(Comm& comm, DType compute) : parameters(table, comm, backend, {.compute = compute}, plan) {
    arena = std::make_unique<Arena>(plan, *backend.device);
    parameters.commit(*arena);
    parameters.initialize(9, *stream);
  }

  ParamTable table = small_table();
  Backend backend = make_cpu_backend();
  std::unique_ptr<Stream> stream = backend.device->make_stream();
  MemoryPlan plan;
  ShardedParameters parameters;
  std::unique_ptr<Arena> arena;
};

}  // namespace

RANKS_CASE("a gathered unit holds each weight's own random numbers, for any number of ranks") {
  Sharded s(world.comm(), DType::kF32);
  for (int64_t unit = 0; unit < 4; ++unit) {
    const std::vector<Tensor> whole = s.parameters.acquire(unit, *s.stream);
    const Unit& spec = s.table.units[static_cast<size_t>(unit)];
    for (size_t m = 0; m < spec.matrices.size(); ++m) {
      int64_t row = 0;
      for (const Param& part : spec.matrices[m].parts) {
        std::vector<float> expected(static_cast<size_t>(part.shape.count()));
        RandomStream(9, part.name).fill_normal(expected.data(), part.shape.count(), 0, 0, 0.5);
        const float* got = whole[m].rows(row, row + part.shape[0]).as<float>();
        CHECK(std::equal(expected.begin(), expected.end(), got));
        row += part.shape[0];
      }
    }
    s.parameters.release(unit, *s.stream);
  }
}

RANKS_CASE("norm weights begin at exactly one") {
  Sharded s(world.comm(), DType::kBF16);
  const auto norms = s.parameters.acquire(4, *s.stream);
  for (int64_t i = 0; i < 7; ++i) CHECK(to_float(norms[0].as<bf16>()[i]) == 1.0f);
  s.parameters.release(4, *s.stream);
}

RANKS_CASE("changed masters reach the next gather, rounded to the compute dtype") {
  Sharded s(world.comm(), DType::kBF16);
  s.parameters.release(1, (s.parameters.acquire(1, *s.stream), *s.stream));
  s.backend.ops->fill(*s.stream, {.x = s.parameters.master(), .value = 1.0 + 0x1p-10});
  s.parameters.masters_changed(*s.stream);
  const auto whole = s.parameters.acquire(1, *s.stream);
  CHECK(to_float(whole[0].as<bf16>()[3]) == 1.0f);
  s.parameters.release(1, *s.stream);
}

RANKS_CASE("gradients of several micro-batches add up over the ranks") {
  Sharded s(world.comm(), DType::kF32);
  Comm& comm = world.comm();
  for (int step = 0; step < 2; ++step) {  // the second step must not see the first one's
    s.parameters.begin_step();
    for (int micro = 0; micro < 3; ++micro) {
      for (int64_t unit = 3; unit >= 1; --unit) {
        const auto g = s.parameters.gradient(unit, *s.stream);
        for (const Tensor& m : g.matrices) {
          float* values = m.as<float>();
          for (int64_t i = 0; i < m.count(); ++i) {
            const float value = static_cast<float>((comm.rank() + 1) * (micro + 1));
            values[i] = g.write == Write::kOverwrite ? value : values[i] + value;
          }
        }
        s.parameters.reduce(unit, *s.stream);
      }
    }
    s.parameters.wait_reduced(*s.stream);
    const float expected = static_cast<float>(comm.size() * (comm.size() + 1) / 2 * 6);
    for (int64_t unit = 1; unit <= 3; ++unit) {
      const int64_t begin = s.parameters.slice_begin(unit), length = s.parameters.slice_elements(unit);
      const float* slice = s.parameters.gradients().as<float>() + begin;
      const int64_t first = comm.rank() * length;
      for (const FlatParam& flat : flat_params(s.table.units[static_cast<size_t>(unit)])) {
        for (int64_t i = std::max(flat.begin, first); i < std::min(flat.end, first + length); ++i) {
          REQUIRE(slice[i - first] == expected);
        }
      }
    }
  }
}

RANKS_CASE("a gradient written from two places before it is reduced counts both") {
  Sharded s(world.comm(), DType::kF32);
  s.parameters.begin_step();
  const auto first = s.parameters.gradient(0, *s.stream);
  CHECK(first.write == Write::kOverwrite);
  const auto second = s.parameters.gradient(0, *s.stream);
  CHECK(second.write == Write::kAccumulate);
  CHECK(first.matrices[0].data() == second.matrices[0].data());
  s.parameters.reduce(0, *s.stream);
}

RANKS_CASE("what the ranks exchange comes first where the device is busy with other work, too") {
  class PriorityDevice : public CpuDevice {
   public:
    std::unique_ptr<Stream> do_make_stream(StreamPriority priority) override {
      high += priority == StreamPriority::kHigh;
      return CpuDevice::do_make_stream(priority);
    }
    int high = 0;
  };
  Backend backend = make_cpu_backend();
  backend.device = std::make_unique<PriorityDevice>();
  const ParamTable table = small_table();
  MemoryPlan plan;
  ShardedParameters parameters(table, world.comm(), backend, {}, plan);
  const Arena arena(plan, *backend.device);
  parameters.commit(arena);
  CHECK(static_cast<PriorityDevice&>(*backend.device).high == 2);  // gathers and reductions
}

RANKS_CASE("the optimizer's ranges cover the shard once, and only norms do not decay") {
  Sharded s(world.comm(), DType::kBF16);
  int64_t end = 0;
  for (const ShardRange& range : s.parameters.ranges()) {
    CHECK(range.begin == end);
    end = range.end;
  }
  CHECK(end == s.parameters.shard_elements());
  CHECK(s.parameters.ranges().front().embedding);
  CHECK(s.parameters.ranges().back().decay == Decay::kNo);
  CHECK(s.parameters.ranges().size() == 3);
}

RANKS_CASE("no rank keeps a whole copy: state is its share, whole units live in two layer buffers") {
  Sharded s(world.comm(), DType::kBF16);
  const int ranks = world.size();
  int64_t shard = 0;
  for (const Unit& unit : s.table.units) shard += UnitLayout(unit).slice(ranks);
  CHECK(s.parameters.master().count() == shard);
  int64_t layer_buffers = 0;
  for (const auto& entry : s.plan.entries()) layer_buffers += entry.name.rfind("gathered weights/layer", 0) == 0;
  CHECK(layer_buffers == (ranks == 1 ? 0 : 2));
}

RANKS_CASE("misuse of the protocol is a bug that throws") {
  if (world.size() == 1) return;  // alone there are no buffers to misuse
  Sharded s(world.comm(), DType::kBF16);
  CHECK_THROWS_AS(s.parameters.release(1, *s.stream), Error);
  s.parameters.acquire(1, *s.stream);
  CHECK_THROWS_AS(s.parameters.acquire(3, *s.stream), Error);  // shares the buffer of layer 0
  CHECK_THROWS_AS(s.parameters.weights_changed(), Error);
  s.parameters.release(1, *s.stream);
  CHECK_THROWS_AS(s.parameters.reduce(2, *s.stream), Error);
  s.parameters.gradient(1, *s.stream);
  CHECK_THROWS_AS(s.parameters.gradient(3, *s.stream), Error);
  s.parameters.reduce(1, *s.stream);
}

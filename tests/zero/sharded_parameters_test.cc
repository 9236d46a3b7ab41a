#include "zero/sharded_parameters.h"

#include <catch2/catch.hpp>
#include <future>

#include "backend/cpu/device.h"
#include "backend/observer.h"
#include "base/error.h"
#include "base/rng.h"
#include "support/ranks.h"
#include "zero/sharded.h"

using namespace tokamak;

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
    s.parameters.release(unit);
  }
}

RANKS_CASE("norm weights begin at exactly one") {
  Sharded s(world.comm(), DType::kBF16);
  const auto norms = s.parameters.acquire(4, *s.stream);
  for (int64_t i = 0; i < 7; ++i) CHECK(to_float(norms[0].as<bf16>()[i]) == 1.0f);
  s.parameters.release(4);
}

RANKS_CASE("changed masters reach the next gather, rounded to the compute dtype") {
  Sharded s(world.comm(), DType::kBF16);
  s.parameters.acquire(1, *s.stream);
  s.parameters.release(1);
  s.backend.ops->fill(*s.stream, {.x = s.parameters.master(), .value = 1.0 + 0x1p-10});
  s.parameters.masters_changed(*s.stream);
  const auto whole = s.parameters.acquire(1, *s.stream);
  CHECK(to_float(whole[0].as<bf16>()[3]) == 1.0f);
  s.parameters.release(1);
}

RANKS_CASE("gradients of several micro-batches add up over the ranks, by every policy and in any number of replicas") {
  const int ranks = world.size();
  for (const bool reduce_once : {false, true}) {
    for (int replicas = 1; replicas <= ranks; ++replicas) {
      if (ranks % replicas != 0) continue;
      const MeshGroups groups(world.comm(), replicas);
      Sharded s(groups.mesh(), DType::kF32, {.reduce_once = reduce_once});
      for (int step = 0; step < 2; ++step) {  // the second step must not see the first one's
        s.parameters.begin_step();
        for (int micro = 0; micro < 3; ++micro) {
          s.parameters.begin_microbatch(micro == 2);
          for (int64_t unit = 3; unit >= 1; --unit) {
            const auto g = s.parameters.gradient(unit, *s.stream);
            for (const Tensor& m : g.matrices) {
              float* values = m.as<float>();
              for (int64_t i = 0; i < m.count(); ++i) {
                const float value = static_cast<float>((world.rank() + 1) * (micro + 1) * (i % 7 + 1));
                values[i] = g.write == Write::kOverwrite ? value : values[i] + value;
              }
            }
            s.parameters.reduce(unit, *s.stream);
          }
        }
        s.parameters.wait_reduced(*s.stream);
        const auto sum = static_cast<float>(ranks * (ranks + 1) / 2 * 6);
        for (int64_t unit = 1; unit <= 3; ++unit) {
          const int64_t begin = s.parameters.slice_begin(unit), length = s.parameters.slice_elements(unit);
          const float* slice = s.parameters.gradients().as<float>() + begin;
          const int64_t first = groups.mesh().shard().rank() * length;
          const Unit& spec = s.table.units[static_cast<size_t>(unit)];
          const UnitLayout layout(spec);
          for (size_t m = 0; m < spec.matrices.size(); ++m) {
            const int64_t from = layout.offsets[m], to = from + spec.matrices[m].count();
            for (int64_t i = std::max(from, first); i < std::min(to, first + length); ++i) {
              REQUIRE(slice[i - first] == sum * static_cast<float>((i - from) % 7 + 1));
            }
          }
        }
      }
    }
  }
}

RANKS_CASE("whole gradients have a buffer per layer and nothing to add them up with") {
  if (world.size() == 1) return;
  Sharded s(world.comm(), DType::kBF16, {.reduce_once = true});
  int64_t layers = 0;
  for (const auto& entry : s.plan.entries()) {
    layers += entry.name.rfind("gradients/layer", 0) == 0;
    CHECK(entry.name != "gradients/reduced");
  }
  CHECK(layers == 3);
  // Outside of the last micro-batch nothing is exchanged; in it, each unit once, and never again.
  CollectiveCount count;
  const Observation watched(*s.backend.device, count);
  s.parameters.begin_step();
  s.parameters.begin_microbatch(false);
  CHECK(s.parameters.gradient(1, *s.stream).write == Write::kOverwrite);
  s.parameters.reduce(1, *s.stream);
  CHECK(count.calls == 0);
  s.parameters.begin_microbatch(true);
  CHECK(s.parameters.gradient(1, *s.stream).write == Write::kAccumulate);
  s.parameters.reduce(1, *s.stream);
  CHECK(count.calls == 1);
  s.parameters.gradient(1, *s.stream);
  CHECK_THROWS_AS(s.parameters.reduce(1, *s.stream), Error);
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
  if (world.size() == 1) return;  // one rank has no buffers to misuse
  Sharded s(world.comm(), DType::kBF16);
  CHECK_THROWS_AS(s.parameters.release(1), Error);
  for (const int64_t unit : {1, 2}) s.parameters.acquire(unit, *s.stream);
  CHECK_THROWS_AS(s.parameters.acquire(3, *s.stream), Error);  // layers share two buffers
  CHECK_THROWS_AS(s.parameters.weights_changed(), Error);
  for (const int64_t unit : {1, 2}) s.parameters.release(unit);
  CHECK_THROWS_AS(s.parameters.reduce(2, *s.stream), Error);
  for (const int64_t unit : {1, 2}) s.parameters.gradient(unit, *s.stream);
  CHECK_THROWS_AS(s.parameters.gradient(3, *s.stream), Error);
  for (const int64_t unit : {1, 2}) s.parameters.reduce(unit, *s.stream);
}

namespace {

// An update of every weight to `value`, as an optimizer makes it.
void update(Sharded& s, double value) {
  s.parameters.begin_update(*s.stream);
  for (const UpdatePart& part : s.parameters.update_parts()) {
    s.backend.ops->fill(*s.stream, {.x = s.parameters.master().flat(part.begin, part.end), .value = value});
    s.backend.ops->cast(*s.stream, {.src = s.parameters.master().flat(part.begin, part.end),
                                    .dst = s.parameters.weights().flat(part.begin, part.end)});
    s.parameters.updated(part, *s.stream);
  }
}

}  // namespace

RANKS_CASE("an updated unit is gathered at once where it has a buffer, in the order of the next forward pass") {
  for (const int64_t kept : {int64_t{0}, ShardingPolicy::kAllLayers}) {
    Sharded s(world.comm(), DType::kBF16, {.kept_layers = kept});
    CallOrder order(s.parameters);
    const Observation watched(*s.backend.device, order);
    update(s, 2);
    // Norms, embedding, layers; the third layer's buffer is the first one's.
    std::vector<std::string> expected = {"all_gather 4 on gather", "all_gather 0 on gather", "all_gather 1 on gather",
                                         "all_gather 2 on gather"};
    if (kept > 0) expected.emplace_back("all_gather 3 on gather");
    CHECK(order.calls == (world.size() == 1 ? std::vector<std::string>{} : expected));
    for (int64_t unit = 0; unit < 5; ++unit) {
      const auto whole = s.parameters.acquire(unit, *s.stream);
      CHECK(to_float(whole[0].as<bf16>()[whole[0].count() - 1]) == 2.0f);
      s.parameters.release(unit);
    }
    CHECK(order.calls.size() == (world.size() == 1 ? 0 : 5));  // acquire() gathered the third layer
  }
}

RANKS_CASE("gathers that nobody asked for are harmless: the next update waits for them, and so does the end") {
  for (int round = 0; round < 20; ++round) {
    Sharded s(world.comm(), DType::kBF16);
    for (int step = 1; step <= 3; ++step) update(s, step);  // writes weights that are being gathered
    for (const int64_t unit : {1, 4}) {
      const auto whole = s.parameters.acquire(unit, *s.stream);
      for (int64_t i = 0; i < whole[0].count(); ++i) REQUIRE(to_float(whole[0].as<bf16>()[i]) == 3.0f);
      s.parameters.release(unit);
    }
    s.backend.ops->fill(*s.stream, {.x = s.parameters.master(), .value = 4});
    update(s, 4);
    s.parameters.masters_changed(*s.stream);  // as loading does
    CHECK(to_float(s.parameters.acquire(1, *s.stream)[0].as<bf16>()[0]) == 4.0f);
    s.parameters.release(1);
    s.parameters.prefetch(3, *s.stream);  // the memory is released during this gather
  }
}

RANKS_CASE("without overlap the shard is updated at once, and everything goes on the stream that computes") {
  Sharded s(world.comm(), DType::kBF16, {.overlap = false});
  CHECK(s.parameters.update_parts().size() == 1);
  CallOrder order(s.parameters);
  const Observation watched(*s.backend.device, order);
  update(s, 2);
  s.parameters.acquire(1, *s.stream);
  s.parameters.release(1);
  CHECK(order.calls ==
        (world.size() == 1 ? std::vector<std::string>{} : std::vector<std::string>{"all_gather 1 on other"}));
}

RANKS_CASE("an update begins when the gathers before it are over, since they read what it writes") {
  if (world.size() == 1) return;
  class GatherDevice : public CpuDevice {
   public:
    std::unique_ptr<Stream> do_make_stream(StreamPriority priority) override {
      std::unique_ptr<Stream> stream = CpuDevice::do_make_stream(priority);
      if (gathers == nullptr && priority == StreamPriority::kHigh) gathers = stream.get();
      return stream;
    }
    Stream* gathers = nullptr;
  };
  // Lets the gathers go on when the host waits.
  struct Release : Observer {
    void begin(Stream&, const Call&) override {}
    void end(Stream&, const Call&) override {}
    void host_waits(Stream&) override { held.set_value(); }
    std::promise<void> held;
  };
  bool over = false;
  Backend backend = make_cpu_backend();
  backend.device = std::make_unique<GatherDevice>();
  const ParamTable table = small_table();
  MemoryPlan plan;
  ShardedParameters parameters(table, world.comm(), backend, {}, plan);
  const Arena arena(plan, *backend.device);
  parameters.commit(arena);
  const auto compute = backend.device->make_stream();
  parameters.initialize(9, *compute);

  Release release;
  static_cast<GatherDevice&>(*backend.device).gathers->run_on_host([held = release.held.get_future().share(), &over] {
    held.wait();
    over = true;
  });
  parameters.prefetch(1, *compute);
  const Observation watched(*backend.device, release);
  parameters.begin_update(*compute);
  REQUIRE(over);
}

// A value that is not finite, planted in one rank's memory or made there by an overflow, is traced to its rank, layer,
// operation and tensor. Cases are drawn: weights, moments, gradients, activations, the RoPE table, in each layer.
#include "train/non_finite_trace.h"

#include <array>
#include <atomic>
#include <catch2/catch.hpp>

#include "base/process.h"
#include "base/rng.h"
#include "tensor/unit_layout.h"
#include "train/plant.h"

using namespace tokamak;
using Catch::Contains;

namespace {

// The first element of a named weight that lies in this rank's slice of its unit.
struct Place {
  int64_t unit = 0, offset = 0;
  int64_t in_weight = 0;
};
std::optional<Place> place_of(Engine& engine, const std::string& name) {
  const ShardedParameters& parameters = engine.parameters();
  for (int64_t u = 0; const Unit& unit : engine.table().units) {
    const int64_t slice = parameters.slice_elements(u), begin = slice * parameters.mesh().shard().rank();
    for (const FlatParam& param : flat_params(unit)) {
      const int64_t first = std::max(param.begin, begin);
      if (param.param->name == name && first < std::min(param.end, begin + slice)) {
        return Place{u, first - begin, first - param.begin};
      }
    }
    ++u;
  }
  return std::nullopt;
}

void plant_in_state(Engine& engine, const std::string& kind, const std::string& weight, float value) {
  const std::optional<Place> place = place_of(engine, weight);
  for (const StateTensor& part : engine.state()) {
    if (part.name != kind) continue;
    set(part.tensor, part.units[static_cast<size_t>(place->unit)].begin + place->offset, value);
  }
  if (kind != "master") return;
  set(engine.parameters().weights(), engine.parameters().slice_begin(place->unit) + place->offset, value);
}

RunConfig config_of(const ToyPlace& place, const std::string& name, int ranks, bool in_bf16) {
  RunConfig config = place.config(name, ranks);
  if (in_bf16) config.precision.compute = Precision::kBF16;
  config.training.micro_batch_size.value = 2;
  return config;
}

MetricRecord traced(const ToyPlace& place, const RunConfig& config, int ranks, int rank,
                    const std::function<void(Engine&)>& act) {
  RunConfig run = config;
  const ToyRunOptions options = after_step_3(run, rank, act);
  train(ranks, run, options);
  return last_event(place.run(config.run.name), "non_finite");
}

constexpr int64_t kLayers = 3;

struct Drawn {
  int ranks, rank;
  int64_t layer;
  bool in_bf16;
  int64_t index;
};

// A case for each layer, on one rank and on three.
std::vector<Drawn> drawn_cases(const std::string& kind) {
  const RandomStream random(35, kind);
  uint64_t at = 0;
  std::vector<Drawn> cases;
  for (const int ranks : {1, 3}) {
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      const uint64_t word = random.word(at++);
      cases.push_back({ranks, static_cast<int>(word % static_cast<uint64_t>(ranks)), layer, (word >> 8) % 2 == 1,
                       static_cast<int64_t>(word >> 16)});
    }
  }
  return cases;
}

std::string name_of(const std::string& kind, const Drawn& one) { return str(kind, "-", one.ranks, "-", one.layer); }

}  // namespace

TEST_CASE("a value planted in an output is traced to rank, layer, pass, operation, operand and index") {
  const ToyPlace place;
  const struct {
    const char *title, *pass, *operand;
    float value;
  } outputs[] = {
      {"gemm qkv forward", "forward", "c", kNaN},        {"attention", "forward", "out", kInfinity},
      {"swiglu", "forward", "out", -kInfinity},          {"gemm down dx", "backward", "c", kNaN},
      {"attention_backward", "backward", "dqkv", kNaN},  {"gemm qkv dw", "backward", "c", kInfinity},
      {"rmsnorm_backward", "backward", "dweight", kNaN},
  };
  int runs = 0;
  for (const auto& [title, pass, operand, value] : outputs) {
    for (const Drawn& one : drawn_cases(title)) {
      const std::string name = name_of(str("output", runs), one);
      INFO(title << ", " << name << ", rank " << one.rank << (one.in_bf16 ? ", bf16" : ""));
      std::optional<Plant> plant;
      const MetricRecord record =
          traced(place, config_of(place, name, one.ranks, one.in_bf16), one.ranks, one.rank, [&](Engine& engine) {
            Device& device = *engine.backend().device;
            plant.emplace(device, Plant::Place{title, {pass, one.layer}, operand, value, one.index});
            device.observe(*plant);
          });
      CHECK(record.step == 4);
      const RunEvent& event = record.event.value();
      CHECK(event.text("rank") == str(one.rank));
      CHECK(event.text("host") == host_name());
      CHECK(event.text("pass") == pass);
      CHECK(event.text("layer") == str(one.layer));
      CHECK(event.text("operation") == title);
      CHECK_THAT(event.text("tensor"), Catch::StartsWith(operand) || Catch::StartsWith("gradient of model.layers."));
      CHECK(event.text("value") == str(value));
      CHECK_THAT(event.text("inputs"), Contains(" up to "));
      CHECK_THAT(event.text("sample"), Contains(" of " + place.file("train") + ", token "));
      ++runs;
    }
  }
  CHECK(runs == 42);
}

TEST_CASE("a weight or moment that is not finite is traced to its name, index and state") {
  const ToyPlace place;
  int runs = 0;
  for (const std::string kind : {"master", "exp_avg", "exp_avg_sq"}) {
    for (const char* matrix : {"self_attn.k_proj.weight", "mlp.down_proj.weight", "input_layernorm.weight"}) {
      for (const Drawn& one : drawn_cases(kind + matrix)) {
        if (one.ranks == 1 && kind == "exp_avg") continue;
        const std::string name = str(name_of(kind, one), "-", matrix);
        const std::string weight = str("model.layers.", one.layer, ".", matrix);
        INFO(name);
        const RunConfig config = config_of(place, name, one.ranks, one.in_bf16);
        // The first rank that has some of the weight.
        int owner = 0;
        RunConfig finder = config;
        finder.run.output_dir = place.run(name + "-owner");
        finder.training.evals = {{}};
        ToyRunOptions find;
        std::atomic<int> least{one.ranks};
        find.evals = [&](Engine& engine, const std::function<void()>&) {
          if (place_of(engine, weight)) {
            int known = least;
            while (engine.comm().rank() < known && !least.compare_exchange_weak(known, engine.comm().rank())) {
            }
          }
          return std::vector<NamedValue>();
        };
        find.stop_at_step = 1;
        finder.training.evals_interval = 1;
        train(one.ranks, finder, find);
        owner = least;
        int64_t element = -1;
        const MetricRecord record = traced(place, config, one.ranks, owner, [&](Engine& engine) {
          element = place_of(engine, weight)->in_weight;
          plant_in_state(engine, kind, weight, kNaN);
        });
        const RunEvent& event = record.event.value();
        CHECK(record.step <= 5);
        CHECK(event.text("rank") == str(owner));
        CHECK_THAT(event.text("tensor"), Catch::StartsWith(weight + "["));
        CHECK(event.text("value") == "nan");
        CHECK_THAT(event.text("state"), Contains("master nan"));
        if (kind != "master") CHECK_THAT(event.text("state"), Contains(kind + " nan"));
        ++runs;
      }
    }
  }
  CHECK(runs > 40);
}

TEST_CASE("a real overflow is traced to the operation that made it, with the greatest of what went in") {
  const ToyPlace place;
  for (const Drawn& one : drawn_cases("overflow")) {
    const std::string forward = name_of("forward", one), backward = name_of("backward", one);
    INFO(forward);
    std::optional<Plant> plant;
    const auto plants = [&](const Plant::Place& where) {
      return [&, where](Engine& engine) {
        plant.emplace(*engine.backend().device, where);
        engine.backend().device->observe(*plant);
      };
    };
    MetricRecord record = traced(place, config_of(place, forward, one.ranks, false), one.ranks, one.rank,
                                 plants({"gemm qkv forward", {"forward", one.layer}, "c", kHuge}));
    CHECK(record.event->text("operation") == "rope");  // its sums exceed f32
    CHECK(record.event->text("pass") == "forward");
    CHECK(record.event->text("layer") == str(one.layer));
    CHECK(record.event->text("rank") == str(one.rank));
    CHECK_THAT(record.event->text("inputs"), Contains(str(" up to ", double{kHuge})));
    record = traced(place, config_of(place, backward, one.ranks, false), one.ranks, one.rank,
                    plants({"attention_backward", {"backward", one.layer}, "dqkv", kHuge}));
    CHECK(record.event->text("operation") == "rope");
    CHECK(record.event->text("pass") == "backward");
    CHECK(record.event->text("layer") == str(one.layer));
    CHECK(record.event->text("rank") == str(one.rank));
    CHECK_THAT(record.event->text("inputs"), Contains(str(" up to ", double{kHuge})));
  }
}

TEST_CASE("a damaged RoPE table is named as the table") {
  const ToyPlace place;
  for (const int ranks : {1, 3}) {
    std::optional<Plant> plant;
    RunConfig config = config_of(place, str("rope", ranks), ranks, false);
    const MetricRecord record = traced(place, config, ranks, ranks - 1, [&](Engine& engine) {
      plant.emplace(*engine.backend().device, Plant::Place{"rope", {"forward", 1}, "table", kNaN, 5});
      engine.backend().device->observe(*plant);
    });
    CHECK(record.event->text("operation") == "rope");
    CHECK(record.event->text("tensor") == "table[0, 5]");
    CHECK(record.event->text("layer") == "0");
    CHECK(record.event->text("rank") == str(ranks - 1));
  }
}

TEST_CASE("a gradient that goes bad on its way is traced to the rank that received it") {
  const ToyPlace place;
  std::optional<Plant> plant;
  const MetricRecord record = traced(place, config_of(place, "received", 3, false), 3, 1, [&](Engine& engine) {
    plant.emplace(*engine.backend().device, Plant::Place{"reduce_scatter", {"backward", 1}, "slice", kNaN, 3});
    engine.backend().device->observe(*plant);
  });
  CHECK(record.event->text("operation") == "reduce_scatter");
  CHECK(record.event->text("rank") == "1");
  CHECK_THAT(record.event->text("tensor"), Contains("gradient of model.layers."));
}

TEST_CASE("a value that arises after the last micro-batch belongs to no sample") {
  const ToyPlace place;
  std::optional<Plant> plant;
  const MetricRecord record = traced(place, config_of(place, "summed", 2, false), 2, 1, [&](Engine& engine) {
    plant.emplace(*engine.backend().device, Plant::Place{"sum_squares", {"", -1}, "sums", kNaN, 0});
    engine.backend().device->observe(*plant);
  });
  CHECK(record.event->text("operation") == "sum_squares");
  CHECK(record.event->text("rank") == "1");
  CHECK(record.event->text("sample").empty());
  CHECK(record.event->text("document").empty());
  CHECK_THAT(record.event->detail, !Contains("reading"));
}

TEST_CASE("a fault that does not happen again is said to be the hardware's, and the run goes on without the step") {
  // Writes into the first call of step 4 alone.
  class Once : public Observer {
   public:
    void begin(Stream&, const Call&) override {}
    void end(Stream&, const Call& call) override {
      if (std::string(call.name) != "embedding" || std::exchange(done_, true)) return;
      for (const Operand& operand : call.operands) {
        if (operand.access == Access::kWrite) set(*operand.tensor, 0, kNaN);
      }
    }

   private:
    bool done_ = false;
  };
  const ToyPlace place;
  Once once;
  RunConfig config = config_of(place, "once", 2, false);
  const MetricRecord record =
      traced(place, config, 2, 1, [&](Engine& engine) { engine.backend().device->observe(once); });
  CHECK_THAT(record.event->detail, Contains("step 4: every value is finite when it is computed again"));

  // The bits of a run that goes past step 4 without its update.
  train(2, config_of(place, "source", 2, false), {.stop_at_step = 3});
  RunConfig past = config_of(place, "past", 2, false);
  past.training.evals = {{}};
  std::array<Engine*, 2> engines{};
  ToyRunOptions options;
  options.evals = [&](Engine& engine, const std::function<void()>&) {
    engines[static_cast<size_t>(engine.comm().rank())] = &engine;
    return std::vector<NamedValue>();
  };
  options.run = [&](World& world, Trainer& trainer) {
    trainer.run();
    CheckpointReader reader = CheckpointReader::open(place.checkpoint("source", 3));
    load_weights(world.comm(), reader, *engines[static_cast<size_t>(world.rank())]);
    RunState state = reader.manifest().point.state;
    state.step = 4;
    state.tokens = state.tokens / 3 * 4;
    state.next_sample = state.next_sample / 3 * 4;
    trainer.go_to(state);
    return trainer.run();
  };
  train(2, past, options);
  CHECK((saved_state(place.checkpoint("once", 6)) == saved_state(place.checkpoint("past", 6))));
}

TEST_CASE("a sound run is not traced, and resilience.non_finite: stop ends a bad one with what was found") {
  const ToyPlace place;
  train(2, config_of(place, "sound", 2, false));
  const auto all = events(place.run("sound"));
  CHECK(std::count(all.begin(), all.end(), "non_finite") == 0);
  RunConfig config = config_of(place, "stops", 2, false);
  config.resilience.non_finite = NonFiniteAction::kStop;
  std::optional<Plant> plant;
  const SharedError error =
      error_of(2, config, after_step_3(config, 1, [&](Engine& engine) {
                 plant.emplace(*engine.backend().device, Plant::Place{"swiglu", {"forward", 2}, "out", kNaN, 0});
                 engine.backend().device->observe(*plant);
               }));
  CHECK(error.kind() == Kind::kNumerics);
  CHECK_THAT(error.what(), Contains("step 4: rank 1 (") && Contains("forward of layer 2: swiglu made out[0, 0] nan"));
}

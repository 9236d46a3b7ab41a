// A bit flips in one rank's memory and stays finite, so that only the checks of `resilience` can find it. They name the
// rank, and change nothing in a healthy run.
#include "train/corruption_checks.h"

#include <atomic>
#include <bit>
#include <catch2/catch.hpp>

#include "backend/observer.h"
#include "base/file.h"
#include "base/process.h"
#include "support/ranks.h"
#include "train/toy_training.h"

using namespace tokamak;
using Catch::Contains;

namespace {

// Flips the highest bit of the mantissa, so the value changes by a quarter to a half, and stays finite. `skip` selects
// another value.
template <class Bits>
void flip_bits(Tensor tensor, Bits highest, int skip) {
  auto* const values = static_cast<Bits*>(tensor.data());
  for (int64_t i = tensor.count() / 2; i < tensor.count(); ++i) {
    if (values[i] == 0 || skip-- > 0) continue;
    values[i] = static_cast<Bits>(values[i] ^ highest);
    return;
  }
  TOKAMAK_UNREACHABLE("nothing to flip in ", tensor.text());
}
void flip(Tensor tensor, int skip = 0) {
  if (tensor.dtype() == DType::kBF16) return flip_bits<uint16_t>(tensor, 0x40, skip);
  flip_bits<uint32_t>(tensor, 0x400000, skip);
}

// Flips a bit of an operand right after a call has written it. Each time it flips another bit.
class Flips : public Observer {
 public:
  // `at`: which calls of this name, from 1.
  Flips(std::string call, std::string operand, std::vector<int> at = {1})
      : call_(std::move(call)), operand_(std::move(operand)), at_(std::move(at)) {}
  void begin(Stream&, const Call&) override {}
  void end(Stream& stream, const Call& call) override {
    if (call.name != call_) return;
    ++calls_;
    if (std::find(at_.begin(), at_.end(), calls_) == at_.end()) return;
    for (const Operand& operand : call.operands) {
      if (operand.name == operand_)
        stream.run_on_host([tensor = *operand.tensor, skip = calls_] { flip(tensor, skip); });
    }
  }

 private:
  std::string call_, operand_;
  std::vector<int> at_;
  int calls_ = 0;
};

// Options of a run that calls `act` after step 3, on rank 1.
ToyRunOptions after_step_3(RunConfig& config, const std::function<void(Engine&)>& act) {
  config.training.evals = {{}};
  config.training.evals_interval = 3;
  ToyRunOptions options;
  options.evals = [act, calls = std::make_shared<std::atomic<int>>(0)](Engine& engine, const std::function<void()>&) {
    if (engine.comm().rank() == 1 && (*calls)++ == 0) {
      dynamic_cast<ToyDevice&>(*engine.backend().device).finish_streams();  // gathers of the next step read the weights
      act(engine);
    }
    return std::vector<NamedValue>();
  };
  return options;
}

RunConfig checked(RunConfig config) {
  config.resilience.recompute_interval = 1;
  config.resilience.verify_state = true;
  config.checkpoint.interval = TrainingLength::steps(1);
  return config;
}

const std::string kRank1 = "rank 1 (" + host_name() + "): ";

}  // namespace

TEST_CASE("gradients computed twice and verified state raise no alarm and leave the bits of a run as they are") {
  const ToyPlace place;
  for (const int ranks : {1, 2, 3}) {
    for (const Precision precision : {Precision::kF32, Precision::kBF16}) {
      INFO(ranks << " ranks");
      const std::string name = str(ranks, precision == Precision::kBF16 ? "-bf16" : "-f32");
      RunConfig config = place.config(name, ranks);
      config.precision.compute = precision;
      config.training.micro_batch_size.value = 2;  // several micro-batches: gradients add up
      train(ranks, config);
      config.run.output_dir = place.run(name + "-checked");
      config = checked(config);
      config.resilience.recompute_interval = 2;
      train(ranks, config);
      CHECK((saved_state(place.checkpoint(name + "-checked", 6)) == saved_state(place.checkpoint(name, 6))));
      const auto all = events(place.run(name + "-checked"));
      CHECK(std::count(all.begin(), all.end(), "corruption") == 0);
    }
  }
}

TEST_CASE("averages are not verified: to read them costs the host's link") {
  const ToyPlace place;
  RunConfig config = checked(place.config("run", 2));
  config.averages = {{.name = "ema", .half_life = TrainingLength::tokens(600), .every = 1, .start = {}}};
  const ToyRunOptions options = after_step_3(config, [](Engine& engine) { flip(engine.averages().state()[0].tensor); });
  CHECK(train(2, config, options) == RunEnd::kDone);
  const auto all = events(place.run("run"));
  CHECK(std::count(all.begin(), all.end(), "corruption") == 0);
}

TEST_CASE(
    "a bit that flips while gradients are computed is named with its rank and units, and the step computed again") {
  const ToyPlace place;
  train(2, place.config("sound", 2));
  const ToyState sound = saved_state(place.checkpoint("sound", 6));
  const struct {
    const char *call, *operand, *named, *not_named;
  } flips[] = {
      {"embedding", "out", "the loss; ", "what it received"},
      {"rmsnorm_backward", "dx", "layer.2, layer.1, layer.0", "the loss"},
      {"all_gather", "full", "the loss; ", "what it received"},
      {"reduce_scatter", "slice", "what it received of head", "the loss"},
  };
  for (const auto& [call, operand, named, not_named] : flips) {
    INFO(call);
    const std::string name = call;
    RunConfig config = checked(place.config(name, 2));
    config.resilience.verify_state = false;
    Flips flip(call, operand);
    train(2, config, after_step_3(config, [&](Engine& engine) { engine.backend().device->observe(flip); }));
    const auto event = last_event(place.run(name), "corruption");
    CHECK_THAT(event.event->detail, Contains("the gradients of step 4 computed twice differ") &&
                                        Contains(kRank1 + named) && !Contains(not_named) && !Contains("rank 0") &&
                                        Contains("the run goes on"));
    CHECK(event.at("rank") == 1);
    CHECK(read_text(place.run(name) + "/suspects.txt", Kind::kBug) == host_name() + "\n");
    CHECK((saved_state(place.checkpoint(name, 6)) == sound));
  }
}

TEST_CASE("bits that flip in each computation of a step, or on one host again, end the run before the update") {
  const ToyPlace place;
  const struct {
    const char *name, *said;
    std::vector<int> calls;
    int64_t step;
  } flips[] = {
      {"thrice", "the gradients of step 4 computed twice differ, and a third time again", {1, 2, 3}, 4},
      {"again", "the gradients of step 5 computed twice differ, not for the first time", {2, 4}, 5},
  };
  for (const auto& [name, said, calls, step] : flips) {
    INFO(name);
    RunConfig config = checked(place.config(name, 2));
    config.resilience.verify_state = false;
    Flips flip("embedding", "out", calls);  // one call in each computation
    const SharedError error =
        error_of(2, config, after_step_3(config, [&](Engine& engine) { engine.backend().device->observe(flip); }));
    CHECK(error.kind() == Kind::kNumerics);
    CHECK_THAT(error.what(), Contains(said) && Contains(kRank1 + "the loss"));
    CHECK_THAT(error.hint(), Contains(place.checkpoint(name, step - 1)));
    CHECK(steps_of(place, name).back() == step - 1);
    const auto all = events(place.run(name));
    CHECK((all[all.size() - 2] == "corruption" && all.back() == "end"));
    CHECK(last_event(place.run(name), "end").at("exit_code") == 7);
  }
}

TEST_CASE("a bit that flips in weights or moments between two updates is noticed before the next is saved") {
  const ToyPlace place;
  for (const bool saved_at_once : {false, true}) {
    for (const size_t part : {0, 1, 2, 4, 5}) {  // with 4 and 5, moments are bf16
      const std::string name = str("part", part, saved_at_once ? "-saved" : "");
      RunConfig config = place.config(name, 2);
      if (part > 2) config.optimizer.moments = MomentType::kBF16;
      config.resilience.verify_state = true;
      if (saved_at_once) config.checkpoint.interval = TrainingLength::steps(1);
      const SharedError error =
          error_of(2, config, after_step_3(config, [&](Engine& engine) { flip(engine.state().at(part % 3).tensor); }));
      CHECK(error.kind() == Kind::kNumerics);
      const char* const names[] = {"master", "exp_avg", "exp_avg_sq"};
      CHECK_THAT(error.what(), Catch::EndsWith(kRank1 + names[part % 3]) &&
                                   Contains(saved_at_once ? "changed after the update of step 3"
                                                          : "changed between the updates of steps 3 and 4"));
      if (saved_at_once) {
        CHECK((steps_of(place, name) == std::vector<int64_t>{1, 2}));
        CHECK_THAT(error.hint(), Contains(place.checkpoint(name, 2)));
      } else {
        CHECK(steps_of(place, name).empty());
        CHECK_THAT(error.hint(), Contains("there is no checkpoint"));
      }
    }
  }
}

TEST_CASE("what gathers send is verified, too: the weights in bf16") {
  const ToyPlace place;
  RunConfig config = place.config("run", 2);
  config.precision.compute = Precision::kBF16;
  config.resilience.verify_state = true;
  const auto flip_copy = [](Engine& engine) {
    auto* const bits = static_cast<uint16_t*>(engine.parameters().weights().data());
    bits[100] = static_cast<uint16_t>(bits[100] ^ 1);
  };
  CHECK_THAT(error_of(2, config, after_step_3(config, flip_copy)).what(), Catch::EndsWith(kRank1 + "compute copy"));
}

TEST_CASE("the same flips go unnoticed without the checks: the run ends well, with other weights") {
  const ToyPlace place;
  train(2, place.config("sound", 2));
  const auto sound = saved_state(place.checkpoint("sound", 6)).tensors;
  RunConfig config = place.config("state", 2);
  CHECK(train(2, config, after_step_3(config, [](Engine& engine) { flip(engine.state().at(0).tensor); })) ==
        RunEnd::kDone);
  CHECK(saved_state(place.checkpoint("state", 6)).tensors != sound);
  config = place.config("gradient", 2);
  Flips flip("rmsnorm_backward", "dx");
  train(2, config, after_step_3(config, [&](Engine& engine) { engine.backend().device->observe(flip); }));
  CHECK(saved_state(place.checkpoint("gradient", 6)).tensors != sound);
}

TEST_CASE("a step that is not recomputed is not checked, and the last that was is what a checkpoint is judged by") {
  const ToyPlace place;
  for (const char* name : {"passes", "found"}) {
    RunConfig config = checked(place.config(name, 2));
    config.resilience.verify_state = false;
    config.resilience.recompute_interval = name == std::string("passes") ? 3 : 2;  // steps 3 and 6; 2, 4 and 6
    Flips flips("embedding", "out", {1, 2, 3});
    const ToyRunOptions options =
        after_step_3(config, [&](Engine& engine) { engine.backend().device->observe(flips); });  // from step 4 on
    if (config.resilience.recompute_interval == 3) {
      Flips once("embedding", "out");
      CHECK(train(2, config, after_step_3(config, [&](Engine& engine) { engine.backend().device->observe(once); })) ==
            RunEnd::kDone);
      const auto all = events(place.run(name));
      CHECK(std::count(all.begin(), all.end(), "corruption") == 0);
      continue;
    }
    CHECK_THAT(error_of(2, config, options).hint(), Contains(place.checkpoint(name, 2)));  // step 3 was not checked
  }
}

TEST_CASE("a device that does not compute the same bits twice refuses to be compared with itself") {
  class NotDeterministic : public ToyDevice {
   public:
    bool uses_host_memory() const override { return false; }
  };
  const ToyPlace place;
  ToyRunOptions options;
  options.backend = [] { return Backend{std::make_unique<NotDeterministic>(), std::make_unique<CpuOps>()}; };
  RunConfig config = place.config("run");
  config.runtime.cuda_graphs = CudaGraphs::kOff;
  config.resilience.recompute_interval = 1;
  CHECK_THAT(error_of(1, config, options).hint(), Contains("runtime.deterministic: true"));
  config.runtime.deterministic = true;
  CHECK(train(1, config, options) == RunEnd::kDone);
}

RANKS_CASE("ranks that found something of their own are named before those that received it") {
  const int last = world.size() - 1;
  const bool mine = world.rank() == last;
  const Corruption own = find_corruption(world.comm(), mine ? "the loss" : "", "layer.0");
  CHECK(own.ranks == std::vector<int>{last});
  CHECK(own.what == str("rank ", last, " (", host_name(), "): the loss"));
  CHECK(own.hosts == std::vector<std::string>{host_name()});
  const Corruption received = find_corruption(world.comm(), "", mine ? "layer.0" : "");
  CHECK(received.what == str("rank ", last, " (", host_name(), "): what it received of layer.0"));
  CHECK(find_corruption(world.comm(), "", "").ranks.empty());
}

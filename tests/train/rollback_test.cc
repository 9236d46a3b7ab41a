// A run whose loss spikes on a range of poisoned samples goes back and leaves the range out. It ends with the bits of a
// run on data without it: killed around the decision, in stages, resumed on other ranks.
#include <atomic>
#include <catch2/catch.hpp>
#include <stdexcept>

#include "backend/observer.h"
#include "train/poisoned_place.h"

using namespace tokamak;
using Catch::Contains;

namespace {

// Ends a start in the middle of whatever it does, on every rank at its n-th call.
class Kill : public Observer {
 public:
  explicit Kill(int64_t at) : at_(at) {}
  void begin(Stream& stream, const Call& call) override {
    if (call.kind == CallKind::kOperation && !stream.has_own_thread() && ++calls_ == at_)
      throw std::runtime_error("killed");
  }
  void end(Stream&, const Call&) override {}
  int64_t calls() const { return calls_; }

 private:
  const int64_t at_;
  std::atomic<int64_t> calls_{0};
};

// The state at the end, but for where in its data the run is.
void check_ends_as(const ToyState& found, const ToyState& wanted) {
  CHECK((found.tensors == wanted.tensors));
  CHECK(found.run.step == wanted.run.step);
  CHECK(found.run.tokens == wanted.run.tokens);
  CHECK((found.run.outcomes == wanted.run.outcomes));
}

}  // namespace

TEST_CASE("after a rollback a run has the bits of one whose data never had the samples that are left out") {
  const PoisonedPlace place;
  for (const int ranks : {1, 2}) {
    const std::string name = str("poisoned", ranks), clean = str("without", ranks);
    train(ranks, place.config(name, ranks));
    train(ranks, place.config(clean, ranks, "without"));
    CHECK(event_steps(place.run(clean), "spike").empty());
    CHECK((event_steps(place.run(name), "spike") == std::vector<int64_t>{kPoisonStep + 1}));
    CHECK((event_steps(place.run(name), "rollback") == std::vector<int64_t>{kPoisonStep - kSaves}));
    const ToyState found = saved_state(place.checkpoint(name, kSteps));
    check_ends_as(found, saved_state(place.checkpoint(clean, kSteps)));
    REQUIRE(found.run.left_out.size() == 1);
    const LeftOut& range = found.run.left_out[0];
    CHECK((range.step == kPoisonStep && range.first_sample == kFirst && range.samples == kLeftOut));
    CHECK_THAT(range.reason, Contains("deviations above"));
    CHECK(found.run.next_sample == kSteps * kSequences + kLeftOut);
    // Each step once, with the values of the run that never read the range. No loader's waiting is counted twice.
    CHECK((records(place.run(name)) == records(place.run(clean))));
    for (const auto& [step, seconds] : records(place.run(name), "time/data")) CHECK(seconds >= 0);
    // A save follows the first step after the rollback, so that the decision outlasts the start.
    CHECK(saved_state(place.checkpoint(name, kPoisonStep - kSaves + 1)).run.left_out == found.run.left_out);
  }
}

TEST_CASE("a run that is killed around the decision repeats it, to the bits of the run that was not") {
  const PoisonedPlace place;
  train(1, place.config("whole", 1));
  const ToyState whole = saved_state(place.checkpoint("whole", kSteps));
  // The calls of a start, counted where it begins at step 32, right before the poison.
  train(1, place.config("source", 1), {.stop_at_step = kPoisonStep - kSaves});
  const RandomStream random(20, "kills");
  const auto start = [&](const std::string& name, int64_t kill_at, int64_t stop_at_step = 0) {
    RunConfig config = place.config(name, 1);
    config.checkpoint.async = false;
    Kill kill(kill_at);
    ToyRunOptions options{.stop_at_step = stop_at_step};
    options.backend = [&] {
      Backend backend = toy_backend();
      backend.device->observe(kill);
      return backend;
    };
    train(1, config, options);
    return kill.calls();
  };
  const int64_t of_step = start("count", INT64_MAX, 10) / 10;
  for (int i = 0; i < 20; ++i) {
    const std::string name = str("killed", i);
    // From step 39, before the poison, to a few steps after the rollback.
    const auto steps = static_cast<int64_t>(random.word(static_cast<uint64_t>(i)) % 1000);
    const int64_t at = of_step * (kPoisonStep - 2) + of_step * 8 * steps / 1000;
    INFO(name << " at call " << at);
    CHECK_THROWS_AS(start(name, at), std::runtime_error);
    start(name, INT64_MAX);
    const ToyState found = saved_state(place.checkpoint(name, kSteps));
    CHECK((found.tensors == whole.tensors));
    CHECK((found.run == whole.run));
    CHECK((records(place.run(name)) == records(place.run("whole"))));
  }
}

TEST_CASE("a run that resumes after a rollback on another number of ranks reads the same samples") {
  const PoisonedPlace place;
  train(1, place.config("whole", 1));
  const RunState whole = saved_state(place.checkpoint("whole", kSteps)).run;
  for (const int then : {1, 3}) {
    for (const int64_t stop : {kPoisonStep - kSaves + 3, kPoisonStep + 2}) {  // before and after the range
      const std::string name = str("resumed", then, "-", stop);
      // The first pass stops nowhere near: it goes back at step 41, and is stopped as it trains these steps again.
      RunConfig config = place.config(name, 2);
      train(2, config, {.stop_at_step = kPoisonStep});
      train(2, config, {.stop_at_step = kPoisonStep + 2});
      train(then, place.config(name, then));
      const RunState found = saved_state(place.checkpoint(name, kSteps)).run;
      CHECK((found.step == whole.step && found.tokens == whole.tokens && found.next_sample == whole.next_sample));
      REQUIRE(found.left_out.size() == whole.left_out.size());
      CHECK(found.left_out[0].first_sample == whole.left_out[0].first_sample);
      CHECK(found.left_out[0].samples == whole.left_out[0].samples);
    }
  }
}

TEST_CASE("the next stage goes on behind the samples that a stage has left out") {
  const PoisonedPlace place;
  const auto staged = [&](const std::string& name, const std::string& data) {
    RunConfig config = place.config(name, 2, data);
    config.training.micro_batch_size = {};
    StageOptions first = stage_rows(config).front().options;
    StageOptions second = first;
    first.name = "first";
    first.steps = 50;
    second.name = "second";
    second.steps = kSteps - 50;
    config.stages = {first, second};
    config.training.max_steps = 0;
    return config;
  };
  train(2, staged("poisoned", "poisoned"));
  train(2, staged("without", "without"));
  CHECK(event_steps(place.run("poisoned"), "rollback").size() == 1);
  const ToyState found = saved_state(place.checkpoint("poisoned", kSteps));
  CHECK((found.tensors == saved_state(place.checkpoint("without", kSteps)).tensors));
  // A start in the second stage finds the same place.
  train(2, staged("stopped", "poisoned"), {.stop_at_step = 55});
  CHECK(saved_state(place.checkpoint("stopped", 55)).run.outcomes.losses.size() == 5);  // of this stage alone
  train(2, staged("stopped", "poisoned"));
  CHECK((saved_state(place.checkpoint("stopped", kSteps)).tensors == found.tensors));
}

TEST_CASE("poison that goes on is left out range by range, and after max_rollbacks the run ends with what was tried") {
  const PoisonedPlace place(kPoisonStep + 30);
  RunConfig config = place.config("ends", 2);
  config.resilience.spike.skip_samples.value = kSequences;
  config.resilience.spike.max_rollbacks = 3;
  const SharedError error = error_of(2, config);
  CHECK(error.kind() == Kind::kNumerics);
  CHECK_THAT(error.what(),
             Contains("a spike at step 40: ") && Contains("3 rollbacks (resilience.spike.max_rollbacks)"));
  for (const int64_t step : {0, 1, 2})
    CHECK_THAT(error.what(), Contains(str("12 samples from sample ", kFirst + step * kSequences, " on")));
  CHECK(event_steps(place.run("ends"), "rollback").size() == 3);
}

TEST_CASE("action log changes no bit, skip leaves out the updates, and none does not look") {
  const PoisonedPlace place;
  const auto with = [&](const std::string& name, SpikeAction action) {
    RunConfig config = place.config(name, 2);
    config.resilience.spike.action = action;
    train(2, config);
    return saved_state(place.checkpoint(name, kSteps)).tensors;
  };
  const auto logged = with("logged", SpikeAction::kLog), none = with("none", SpikeAction::kNone);
  CHECK((logged == none));
  CHECK(event_steps(place.run("logged"), "spike").size() == 1);
  CHECK(event_steps(place.run("none"), "spike").empty());
  const auto skipped = with("skipped", SpikeAction::kSkip);
  CHECK_FALSE((skipped == none));
  CHECK(records(place.run("skipped"), "optim/skipped_steps").rbegin()->second == kPoisonSteps);
}

TEST_CASE("without a checkpoint before the spike, the run says so and goes on") {
  const PoisonedPlace place;
  RunConfig config = place.config("none", 2);
  config.checkpoint.interval = TrainingLength::none();
  train(2, config);
  CHECK(event_steps(place.run("none"), "spike").size() == 1);
  CHECK(event_steps(place.run("none"), "rollback").empty());
  CHECK(records(place.run("none")).size() == static_cast<size_t>(kSteps));
}

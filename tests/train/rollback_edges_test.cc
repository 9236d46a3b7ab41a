// A spike that meets something else: a step that is not finite, saves, checkpoints of another trajectory or optimizer.
#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>

#include "backend/observer.h"
#include "train/poisoned_place.h"
#include "train/run_data.h"

using namespace tokamak;
using Catch::Contains;

namespace {

// Writes NaN into the output of the n-th embedding, in runs on one rank that of step n, and of `more` after it.
class NaNAt : public Observer {
 public:
  explicit NaNAt(int at, int more = 0) : at_(at), more_(more) {}
  void begin(Stream&, const Call&) override {}
  void end(Stream&, const Call& call) override {
    if (std::string(call.name) != "embedding" || ++calls_ < at_ || calls_ > at_ + more_) return;
    for (const Operand& operand : call.operands) {
      if (operand.access == Access::kWrite) operand.tensor->as<float>()[0] = std::numeric_limits<float>::quiet_NaN();
    }
  }

 private:
  const int at_, more_;
  int calls_ = 0;
};

ToyRunOptions observed(Observer& observer) {
  ToyRunOptions options;
  options.backend = [&observer] {
    Backend backend = toy_backend();
    backend.device->observe(observer);
    return backend;
  };
  return options;
}

}  // namespace

TEST_CASE("a step that is not finite inside a spike neither ends it nor moves its first step") {
  const PoisonedPlace place;
  NaNAt observer(kPoisonStep + 1);
  train(1, place.config("poisoned", 1), observed(observer));
  train(1, place.config("without", 1, "without"));
  CHECK((event_steps(place.run("poisoned"), "non_finite") == std::vector<int64_t>{kPoisonStep + 1}));
  CHECK((event_steps(place.run("poisoned"), "spike") == std::vector<int64_t>{kPoisonStep + 2}));
  CHECK((event_steps(place.run("poisoned"), "rollback") == std::vector<int64_t>{kPoisonStep - kSaves}));
  const ToyState found = saved_state(place.checkpoint("poisoned", kSteps));
  REQUIRE(found.run.left_out.size() == 1);
  CHECK(found.run.left_out[0].step == kPoisonStep);
  CHECK(found.run.left_out[0].first_sample == kFirst);
  CHECK((found.tensors == saved_state(place.checkpoint("without", kSteps)).tensors));
}

TEST_CASE("after a step that a spike has skipped, one that is not finite is traced, and stops the run") {
  const PoisonedPlace place;
  for (const NonFiniteAction action : {NonFiniteAction::kSkip, NonFiniteAction::kStop}) {
    RunConfig config = place.config(action == NonFiniteAction::kStop ? "stops" : "skips", 1);
    config.resilience.spike.action = SpikeAction::kSkip;
    config.resilience.non_finite = action;
    NaNAt observer(kPoisonStep + 1);
    if (action == NonFiniteAction::kStop) {
      const SharedError error = error_of(1, config, observed(observer));
      CHECK_THAT(error.what(), Contains(str("step ", kPoisonStep + 1, ": ")));
    } else {
      train(1, config, observed(observer));
    }
    CHECK((event_steps(config.run.output_dir, "non_finite") == std::vector<int64_t>{kPoisonStep + 1}));
  }
}

TEST_CASE("a rollback goes to no checkpoint that the start has abandoned") {
  const PoisonedPlace place;
  train(2, place.config("run", 2), {.stop_at_step = kPoisonStep - 2});  // saves 8, 16, 24, 32 and 38
  RunConfig config = place.config("run", 2);
  config.checkpoint.load = place.checkpoint("run", 16);
  config.checkpoint.interval = TrainingLength::none();
  config.run.seed = 7;
  train(2, config);
  CHECK((event_steps(place.run("run"), "rollback") == std::vector<int64_t>{16}));
  CHECK((steps_of(place, "run") == std::vector<int64_t>{8, 16, 17, kSteps}));
}

TEST_CASE("a rollback goes to a checkpoint of another optimizer, if the start was allowed to") {
  const PoisonedPlace place;
  RunConfig config = place.config("run", 2);
  train(2, config, {.stop_at_step = 16});
  config.optimizer.name = "muon";
  config.checkpoint.interval = TrainingLength::none();
  config.checkpoint.allow_changes = {"optimizer"};
  train(2, config);
  CHECK((event_steps(place.run("run"), "rollback") == std::vector<int64_t>{16}));
  CHECK(saved_state(place.checkpoint("run", kSteps)).run.optimizer_start == 16);
}

TEST_CASE("a save under way is one to go back to") {
  const PoisonedPlace place;
  RunConfig config = place.config("run", 2);
  config.checkpoint.interval = TrainingLength::steps(kPoisonStep - 1);
  config.resilience.spike.consecutive = 1;
  train(2, config);
  CHECK((event_steps(place.run("run"), "rollback") == std::vector<int64_t>{kPoisonStep - 1}));
}

TEST_CASE("a save that is due inside a spike pushes out no checkpoint that the run may go back to") {
  const PoisonedPlace place;
  RunConfig config = place.config("run", 2);
  config.checkpoint.keep_latest = 1;
  STATIC_REQUIRE(kPoisonStep % kSaves == 0);
  train(2, config);
  CHECK((event_steps(place.run("run"), "rollback") == std::vector<int64_t>{kPoisonStep - kSaves}));
  // A stop inside it saves, and pushes out none either.
  RunConfig stopped = place.config("stopped", 2);
  stopped.checkpoint.keep_latest = 1;
  train(2, stopped, {.stop_at_step = kPoisonStep});
  const std::vector<int64_t> saved = steps_of(place, "stopped");
  CHECK(std::count(saved.begin(), saved.end(), kPoisonStep - kSaves) == 1);
  CHECK(saved.back() == kPoisonStep);
  train(2, stopped);
  CHECK((event_steps(place.run("stopped"), "rollback") == std::vector<int64_t>{kPoisonStep - kSaves}));
}

TEST_CASE("the save after a rollback comes as soon as the steps are good") {
  const PoisonedPlace place;
  NaNAt observer(kPoisonStep + 2);  // 41 steps until the rollback is decided, then the first one after it
  train(1, place.config("run", 1), observed(observer));
  const int64_t first = kPoisonStep - kSaves + 1;
  CHECK((event_steps(place.run("run"), "non_finite") == std::vector<int64_t>{first}));
  const std::vector<int64_t> saved = steps_of(place, "run");
  CHECK(std::count(saved.begin(), saved.end(), first) == 0);
  CHECK(std::count(saved.begin(), saved.end(), first + 1) == 1);
}

TEST_CASE("a save that is due after a bad step comes as soon as a step is good, and is refused once") {
  const PoisonedPlace place;
  NaNAt observer(kSaves, 2);  // in step 8, in its trace, and in step 9
  ToyRunOptions options = observed(observer);
  options.stop_at_step = kPoisonStep - 1;
  train(1, place.config("run", 1), options);
  CHECK((event_steps(place.run("run"), "checkpoint refused") == std::vector<int64_t>{kSaves}));
  const std::vector<int64_t> saved = steps_of(place, "run");
  CHECK((saved == std::vector<int64_t>{kSaves + 2, 2 * kSaves, 3 * kSaves, 4 * kSaves, kPoisonStep - 1}));
}

TEST_CASE("ranges are whole steps, whatever skip_samples is") {
  const PoisonedPlace place;
  RunConfig config = place.config("run", 2);
  config.resilience.spike.skip_samples.value = kLeftOut - 5;
  train(2, config);
  const RunState found = saved_state(place.checkpoint("run", kSteps)).run;
  REQUIRE(found.left_out.size() == 1);
  CHECK(found.left_out[0].samples == kLeftOut);
}

TEST_CASE("outcomes from before a start that does not look for spikes are forgotten") {
  const PoisonedPlace place;
  RunConfig config = place.config("run", 2);
  train(2, config, {.stop_at_step = 20});
  CHECK(saved_state(place.checkpoint("run", 20)).run.outcomes.losses.size() == 16);
  config.resilience.spike.action = SpikeAction::kNone;
  train(2, config, {.stop_at_step = 24});
  CHECK((saved_state(place.checkpoint("run", 24)).run.outcomes == OutcomeWindow()));
}

TEST_CASE("samples that are left out count for max_epochs") {
  const PoisonedPlace place;
  RunConfig config = place.config("run", 1);
  config.model.vocab_size = 61;
  config.data.max_epochs = 1;
  const RunData data(config);
  CHECK(data.exceeded_epochs(config, 0).empty());
  CHECK(data.exceeded_epochs(config, 500).empty());  // 1,400 samples, of which the run reads 840
  CHECK_THAT(data.exceeded_epochs(config, 600), Contains("data.max_epochs is 1"));
}

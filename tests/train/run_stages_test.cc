// Runs of several stages: each trains as a run of its own would, a border changes no bit that a resume would not, and a
// resume continues any of them.
#include <catch2/catch.hpp>
#include <csignal>
#include <random>
#include <utility>

#include "train/run_data.h"
#include "train/toy_training.h"

using namespace tokamak;

namespace {

constexpr int64_t kSteps = 9;

StageOptions stage_of(const RunConfig& config, const char* name, int64_t steps) {
  StageOptions stage = stage_rows([&] {
                         RunConfig plain = config;
                         plain.stages.clear();
                         return plain;
                       }())
                           .front()
                           .options;
  stage.name = name;
  stage.steps = steps;
  return stage;
}

// 3 steps of 12 sequences of 16 tokens, 4 of 6 of 32 with another RoPE base and a mixture, 2 that anneal.
RunConfig staged_config(const ToyPlace& place, const std::string& name, int ranks, const std::string& optimizer) {
  RunConfig config = place.config(name, ranks);
  config.optimizer.name = optimizer;
  config.training.micro_batch_size = {};
  config.model.max_position_embeddings = 64;
  StageOptions first = stage_of(config, "short", 3), second = stage_of(config, "long", 4),
               last = stage_of(config, "anneal", 2);
  second.sequence_length = 32;
  second.rope_theta = 1e5;
  second.sources = {{place.file("train"), 0.75}, {place.file("validation"), 0.25}};
  second.weight_decay = 0.2;
  last.sources = {{place.file("validation")}};
  last.global_batch_tokens /= 2;
  last.document_masking = false;
  last.schedule = StageSchedule::kStage;
  last.lr = 1e-2;
  last.lr_scheduler = {.warmup = TrainingLength::steps(0), .decay_type = DecayType::kLinear, .min_lr_factor = 0};
  config.stages = {first, second, last};
  config.training.max_steps = 0;
  return config;
}

}  // namespace

TEST_CASE("a run of three stages resumes at any step with the same bits, by every optimizer") {
  const ToyPlace place;
  std::mt19937 random(20);
  for (const std::string optimizer : {"adamw", "muon"}) {
    for (const int ranks : {1, 2}) {
      const std::string whole = str(optimizer, ranks);
      REQUIRE(train(ranks, staged_config(place, whole, ranks, optimizer)) == RunEnd::kDone);
      const ToyState expected = saved_state(place.checkpoint(whole, kSteps));
      CHECK(expected.run.tokens == (3 + 4 + 1) * 12 * 16);
      for (int trial = 0; trial < 5; ++trial) {
        const int64_t first = 1 + static_cast<int64_t>(random() % (kSteps - 1));
        const int64_t second = first + static_cast<int64_t>(random() % (kSteps - first));
        const std::string name = str(whole, "-", trial);
        INFO(name << " stops after steps " << first << " and " << second);
        const RunConfig config = staged_config(place, name, ranks, optimizer);
        CHECK(train(ranks, config, {.stop_at_step = first}) == RunEnd::kStopped);
        if (second > first) CHECK(train(ranks, config, {.stop_at_step = second}) == RunEnd::kStopped);
        CHECK(train(ranks, config) == RunEnd::kDone);
        CHECK((saved_state(place.checkpoint(name, kSteps)) == expected));
      }
    }
    const auto reference = records(place.run(str(optimizer, 1)));
    CHECK(worst_difference(records(place.run(str(optimizer, 2))), reference) < 1e-4);
    CHECK(train(1, staged_config(place, optimizer + "-moved", 1, optimizer), {.stop_at_step = 5}) == RunEnd::kStopped);
    CHECK(train(3, staged_config(place, optimizer + "-moved", 3, optimizer)) == RunEnd::kDone);
    CHECK(worst_difference(records(place.run(optimizer + "-moved")), reference) < 1e-4);
  }
}

TEST_CASE("a border is exact: stages that change nothing are the run without stages, to the bit") {
  const ToyPlace place;
  RunConfig plain = place.config("plain", 2);
  CHECK(train(2, plain) == RunEnd::kDone);
  RunConfig cut = place.config("cut", 2);
  cut.stages = {stage_of(cut, "a", 2), stage_of(cut, "b", 1), stage_of(cut, "c", 3)};
  cut.training.max_steps = 0;
  CHECK(train(2, cut) == RunEnd::kDone);
  const ToyState a = saved_state(place.checkpoint("plain", 6)), b = saved_state(place.checkpoint("cut", 6));
  CHECK(a.tensors == b.tensors);
  CHECK(records(place.run("plain")) == records(place.run("cut")));
  CHECK(b.run.tokens == a.run.tokens);
}

TEST_CASE("stages with the same sources read one stream; other weights begin one where each source is left") {
  const ToyPlace place;
  RunConfig config = place.config("places");
  config.model.vocab_size = 61;
  config.data.sources = {{place.file("train"), 0.75}, {place.file("validation"), 0.25}};
  StageOptions other = stage_of(config, "other", 2);
  other.sources[0].weight = 0.25;
  config.stages = {stage_of(config, "first", 3), stage_of(config, "same", 4), other};
  const std::vector<StagePlace> places = stage_places(config, RunTable(config));
  REQUIRE(places.size() == 3);
  CHECK((places[0].first_cell == 0 && places[0].past.empty()));
  CHECK(places[1].first_cell == 3 * 12);
  CHECK(places[2].first_cell == 0);
  std::vector<int64_t> before_same, before_other;
  for (const auto& [id, past] : places[1].past) before_same.push_back(past.cells);
  for (const auto& [id, past] : places[2].past) before_other.push_back(past.cells);
  CHECK_THAT(before_same, Catch::UnorderedEquals(std::vector<int64_t>{0, 0}));
  CHECK_THAT(before_other, Catch::UnorderedEquals(std::vector<int64_t>{(3 + 4) * 9, (3 + 4) * 3}));
}

TEST_CASE("each stage has an event and a validation at its end; a saved state belongs to its stage") {
  const ToyPlace place;
  CHECK(train(1, staged_config(place, "run", 1, "adamw")) == RunEnd::kDone);
  std::vector<std::string> stages;
  for (const std::string& event : events(place.run("run"))) {
    if (event == "stage" || event == "ready" || event == "end") stages.push_back(event);
  }
  CHECK(stages == std::vector<std::string>{"ready", "stage", "stage", "stage", "end"});
  const MetricRecord last = last_event(place.run("run"), "stage");
  CHECK(last.event->detail == "anneal");
  CHECK(last.at("stage/first_step") == 8);
  CHECK(last.at("stage/last_step") == 9);
  CHECK(last.at("stage/tokens_per_step") == 6 * 16);
  std::vector<int64_t> validated;
  for (const auto& [step, loss] : records(place.run("run"), "validation/loss")) validated.push_back(step);
  CHECK(validated == std::vector<int64_t>{3, 7, 9});
  CHECK(saved_state(place.checkpoint("run", 9)).run.next_sample == 2 * 6);
  CHECK(records(place.run("run"), "optim/lr").at(9) == 0);
}

TEST_CASE("every stage removes older checkpoints, and has a record of its last step") {
  const ToyPlace place;
  RunConfig config = staged_config(place, "kept", 1, "adamw");
  config.checkpoint.interval = TrainingLength::steps(1);
  config.checkpoint.keep_latest = 2;
  config.metrics.log_interval = 5;
  CHECK(train(1, config) == RunEnd::kDone);
  CHECK(steps_of(place, "kept") == std::vector<int64_t>{8, 9});
  std::vector<int64_t> recorded;
  for (const auto& [step, lr] : records(place.run("kept"), "optim/lr")) recorded.push_back(step);
  CHECK(recorded == std::vector<int64_t>{3, 5, 7, 9});
}

TEST_CASE("a run that stops at a border does not open the next stage") {
  const ToyPlace place;
  const RunConfig config = staged_config(place, "border", 1, "adamw");
  CHECK(train(1, config, {.stop_at_step = 3}) == RunEnd::kStopped);
  CHECK(last_event(place.run("border"), "stage").event->detail == "short");
  CHECK(train(1, config) == RunEnd::kDone);
}

TEST_CASE("what a stop cuts at a border is made by the next start, before the next stage, by this one's config") {
  const ToyPlace place;
  const auto config_of = [&](const std::string& name) {
    RunConfig config = staged_config(place, name, 1, "adamw");
    config.training.evals = {{}};
    config.training.evals_interval = config.training.validation_interval = 3;
    return config;
  };
  bool stops = false;
  int begun = 0;
  ToyRunOptions options;
  options.evals = [&](Engine&, const std::function<void()>& between) {
    ++begun;
    if (stops) std::raise(SIGTERM);
    between();
    return std::vector<NamedValue>{{"done", 1}};
  };
  REQUIRE(train(1, config_of("straight"), options) == RunEnd::kDone);
  REQUIRE(std::exchange(begun, 0) == 4);  // after steps 3, 6, 7, 9
  stops = true;
  CHECK(train(1, config_of("cut"), options) == RunEnd::kStopped);
  CHECK(steps_of(place, "cut") == std::vector<int64_t>{3});
  stops = false;
  options.stop_at_step = 6;
  CHECK(train(1, config_of("cut"), options) == RunEnd::kStopped);
  options.stop_at_step = 0;
  stops = true;
  CHECK(train(1, config_of("cut"), options) == RunEnd::kStopped);
  CHECK(steps_of(place, "cut").back() == 7);
  stops = false;
  CHECK(train(1, config_of("cut"), options) == RunEnd::kDone);
  CHECK(begun == 4 + 2);
  CHECK(records(place.run("cut"), "evals/done") == records(place.run("straight"), "evals/done"));
  CHECK(records(place.run("cut"), "validation/loss") == records(place.run("straight"), "validation/loss"));
  CHECK(saved_state(place.checkpoint("cut", kSteps)) == saved_state(place.checkpoint("straight", kSteps)));
}

TEST_CASE("stages to come may change, and the end of the present one; what was trained may not") {
  const ToyPlace place;
  const auto stopped = [&](const std::string& name) {
    const RunConfig config = staged_config(place, name, 1, "adamw");
    CHECK(train(1, config, {.stop_at_step = 5}) == RunEnd::kStopped);
    return config;
  };
  RunConfig longer = stopped("longer");
  longer.stages[1].steps = 6;
  longer.stages[2].global_batch_tokens *= 2;
  longer.stages.push_back(longer.stages[1]);
  CHECK(train(1, longer) == RunEnd::kDone);
  CHECK(saved_state(place.checkpoint("longer", 17)).run.tokens == 17 * 12 * 16);

  RunConfig shorter = stopped("shorter");
  shorter.stages[1].steps = 2;  // the border is now
  CHECK(train(1, shorter) == RunEnd::kDone);
  CHECK(saved_state(place.checkpoint("shorter", 7)).run.tokens == (3 + 2 + 1) * 12 * 16);

  const auto refusal = [&](const std::string& name, const auto& change) {
    RunConfig config = stopped(name);
    change(config);
    return std::string(error_of(1, config).what());
  };
  using Catch::Contains;
  CHECK_THAT(refusal("batch", [](RunConfig& c) { c.stages[0].global_batch_tokens *= 2; }),
             Contains("the stages of this config have 1536 tokens") && Contains("960 tokens after 5 steps"));
  CHECK_THAT(refusal("past", [](RunConfig& c) { c.stages[0].sources = {{c.data.validation[0].path}}; }),
             Contains("history of"));
  CHECK_THAT(refusal("mixture", [](RunConfig& c) { c.stages[1].sources[0].weight = 0.5; }),
             Contains("share of samples"));
  CHECK_THAT(refusal("grid", [](RunConfig& c) { c.stages[2].sequence_length = c.stages[2].global_batch_tokens = 64; }),
             Contains("data.grid_length"));
}

TEST_CASE("the batch warms up in a run that resumes in the middle of it with the same bits") {
  const ToyPlace place;
  const auto config = [&](const std::string& name) {
    RunConfig out = place.config(name, 2);
    out.training.micro_batch_size = {};
    out.training.batch_warmup = {.from = 96, .over = 300};  // 4 steps of 96
    out.training.max_steps = 8;
    return out;
  };
  CHECK(train(2, config("whole")) == RunEnd::kDone);
  CHECK(train(2, config("halves"), {.stop_at_step = 5}) == RunEnd::kStopped);
  CHECK(train(2, config("halves")) == RunEnd::kDone);
  const ToyState whole = saved_state(place.checkpoint("whole", 8));
  CHECK((saved_state(place.checkpoint("halves", 8)) == whole));
  CHECK(whole.run.tokens == 4 * 96 + 4 * 192);
}

// Samples in training are the same on any ranks and stages and after a resume, and do not change the training.
#include "train/sampler.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>

#include "monitor/history.h"
#include "tests/data/fixture.h"
#include "tests/tokenizer/model_builder.h"
#include "train/toy_training.h"

using namespace tokamak;
using Catch::Contains;

namespace {

using Texts = std::map<int64_t, std::vector<std::string>>;  // by step

// A place whose data set has a tokenizer of single letters.
class Place : public ToyPlace {
 public:
  Place() {
    ModelBuilder model;
    model.add("\xE2\x96\x81");  // SentencePiece's space
    for (char c = 'a'; c <= 'z'; ++c) model.add(std::string(1, c), -static_cast<float>(c - 'a'));
    Documents documents;
    for (int32_t d = 0; d < 100; ++d) {
      documents.emplace_back();
      for (int32_t i = 0; i < 5 + d % 37; ++i) documents.back().push_back(3 + (d + i * i) % 27);
      documents.back().push_back(kEos);
    }
    write_dataset(file("texts"), documents, {.vocab_size = 30, .tokenizer_file = "tokenizer.model"});
    model.write(file("texts/tokenizer.model"));
  }

  RunConfig config(const std::string& name, int ranks = 1, int64_t interval = 3) const {
    RunConfig config = ToyPlace::config(name, ranks);
    config.data.sources = {{file("texts")}};
    config.data.validation = {};
    config.training.samples = {
        .prompts = {"ab", "c", "ab"}, .interval = interval, .tokens = 9, .temperature = 1, .top_p = 1};
    return config;
  }

  Texts texts(const std::string& name) const {
    Texts found;
    for (const MetricRecord& record : read_history(run(name) + "/metrics.jsonl")) {
      for (const SampleText& one : record.samples) found[record.step].push_back(one.prompt + "|" + one.text);
    }
    return found;
  }
};

}  // namespace

TEST_CASE("samples of the same weights are the same texts at each step, on any ranks, stages and replicas") {
  const Place place;
  const auto texts_of = [&](const std::string& name, int ranks, const std::function<void(RunConfig&)>& change) {
    RunConfig config = place.config(name, ranks);
    config.optimizer.lr = 1e-30;  // changes no weight, so that all of these runs have the same ones
    change(config);
    train(ranks, config);
    return place.texts(name);
  };
  const Texts one = texts_of("one", 1, [](RunConfig&) {});
  REQUIRE(one.size() == 2);
  REQUIRE(one.count(3) == 1);
  CHECK(one.at(3) == one.at(6));
  REQUIRE(one.at(3).size() == 3);
  for (const std::string& text : one.at(3)) CHECK(text.size() >= 3);
  CHECK(one.at(3)[0] != one.at(3)[2]);  // a prompt given twice has two different texts
  for (const int ranks : {2, 3}) {
    for (const int64_t stage : {1, 2, 3}) {
      const std::string name = str("ranks", ranks, "stage", stage);
      CHECK(texts_of(name, ranks, [&](RunConfig& config) { config.parallelism.zero_stage = stage; }) == one);
    }
  }
  CHECK(texts_of("replicas", 2, [](RunConfig& config) { config.parallelism.data_parallel_replicate_degree = 2; }) ==
        one);
  CHECK(texts_of("seed", 1, [](RunConfig& config) { config.training.samples.seed = 2; }) != one);
  CHECK(texts_of("weights", 1, [](RunConfig& config) { config.run.seed = 8; }) != one);
}

TEST_CASE(
    "training leaves the same bits with and without samples, and a resumed run has the texts of one that was not") {
  const Place place;
  for (const int ranks : {1, 2}) {
    for (const int64_t stage : {1, 2, 3}) {
      const auto config_of = [&](const std::string& name, int64_t interval) {
        RunConfig config = place.config(str(name, ranks, stage), ranks, interval);
        config.parallelism.zero_stage = stage;
        config.training.micro_batch_size.value = 12 / ranks / 2;  // two micro-batches a step accumulate gradients
        return config;
      };
      RunConfig without = config_of("without", 0);
      without.training.samples = {};
      train(ranks, without);
      const RunConfig with = config_of("with", 1), resumed = config_of("resumed", 1);
      train(ranks, with);
      train(ranks, resumed, {.stop_at_step = 3});
      train(ranks, resumed);
      const ToyState expected = saved_state(place.checkpoint(without.run.name, 6));
      CHECK((saved_state(place.checkpoint(with.run.name, 6)) == expected));
      CHECK((saved_state(place.checkpoint(resumed.run.name, 6)) == expected));
      const Texts texts = place.texts(with.run.name);
      REQUIRE(texts.size() == 6);
      CHECK(texts.at(1) != texts.at(6));
      CHECK(place.texts(resumed.run.name) == texts);
    }
  }
}

TEST_CASE("a stop within samples ends them, and is saved after this very step") {
  const Place place;
  RunConfig config = place.config("run", 2);
  config.training.samples.tokens = 14;
  config.training.evals = {{}};
  config.training.evals_interval = 3;
  ToyRunOptions options;
  options.evals = [](Engine&, const std::function<void()>&) {
    std::raise(SIGTERM);  // right before the samples of step 3
    return std::vector<NamedValue>();
  };
  CHECK(train(2, config, options) == RunEnd::kStopped);
  CHECK(steps_of(place, "run") == std::vector<int64_t>{3});
  CHECK(place.texts("run").empty());
  CHECK(train(2, config) == RunEnd::kDone);
  CHECK(place.texts("run").count(6) == 1);
}

TEST_CASE("their time is logged by its own name, out of the throughput, in a phase that the watchdog knows") {
  const Place place;
  RunProgress progress;
  ToyRunOptions options;
  options.progress = &progress;
  train(1, place.config("run"), options);
  const std::map<int64_t, double> seconds = records(place.run("run"), "time/samples");
  REQUIRE(seconds.size() == 2);
  for (const auto& [step, of_step] : seconds) CHECK((of_step > 0 && (step == 3 || step == 6)));
  progress.enter(Phase::kSamples);
  CHECK(progress.read().gaps.passed == 2);
  CHECK(name_of(Phase::kSamples) == std::string("samples"));
}

TEST_CASE("logits that are no numbers end the texts, not the run: that is for steps to say") {
  const Place place;
  RunConfig config = place.config("run", 2, 1);
  config.optimizer.lr = 1e38;
  config.training.max_steps = 20;
  const SharedError error = error_of(2, config);
  CHECK(error.kind() == Kind::kNumerics);
  CHECK_THAT(error.what(), Contains("in a row") || Contains("not finite"));
  const Texts texts = place.texts("run");
  REQUIRE(texts.count(2) == 1);
  CHECK(texts.at(2) == std::vector<std::string>{"ab|", "c|", "ab|"});
}

TEST_CASE("what the tokenizer tells of a prompt is an error that names key and value") {
  const Place place;
  const auto problem_of = [&](const std::function<void(RunConfig&)>& change) {
    RunConfig config = place.config("run");
    complete_from_data(config);
    change(config);
    const std::vector<FieldError> found = find_sample_problems(config);
    return found.empty() ? FieldError() : found.at(0);
  };
  const auto prompts = [](std::vector<std::string> texts) {
    return [texts](RunConfig& config) { config.training.samples.prompts = texts; };
  };
  CHECK(problem_of([](RunConfig&) {}).what.empty());
  CHECK(problem_of(prompts({})).what.empty());
  // The prompt takes 15 of 16 tokens, a space and 14 letters, so one is left.
  CHECK(problem_of(prompts({"abcdefghijklmn"})).what.empty());
  const FieldError long_one = problem_of(prompts({"a", "abcdefghijklmno"}));
  CHECK(long_one.key == "training.samples.prompts[1]");
  CHECK_THAT(long_one.what, Contains("(value 'abcdefghijklmno') has 16 tokens") && Contains("16 at most"));
  CHECK_THAT(problem_of(prompts({std::string(100, 'a')})).what, Contains(std::string(60, 'a') + "...'"));
  CHECK_THAT(problem_of(prompts({""})).what, Contains("key 'training.samples.prompts[0]' (value '') has no tokens"));
  const FieldError none = problem_of([&](RunConfig& config) { config.data.sources = {{place.file("train")}}; });
  CHECK(none.key == "training.samples.prompts");
  CHECK_THAT(none.what, Contains("needs a tokenizer") && Contains(place.file("train")));
  CHECK_THAT(problem_of([](RunConfig& config) { config.model.vocab_size = 20; }).what,
             Contains("key 'model.vocab_size' (value 20) is less than the 30 pieces"));
}

TEST_CASE("the memory plan has the keys and values of samples, of their length and at most 8 at once") {
  const Place place;
  const auto planned = [&](const std::function<void(RunConfig&)>& change) {
    RunConfig config = place.config("run");
    complete_from_data(config);
    change(config);
    return planned_bytes_of(config, "key-value cache/");
  };
  // 3 layers, 2 for keys and values, 2 heads of 8, 4 bytes; "ab", 2 tokens that are not of the text, and 9.
  const int64_t token = 3 * 2 * 2 * 8 * 4;
  CHECK(planned([](RunConfig&) {}) == 3 * 13 * token);
  CHECK(planned([](RunConfig& config) { config.training.samples.tokens = 100; }) == 3 * 16 * token);
  CHECK(planned([](RunConfig& config) { config.training.samples.prompts.assign(20, "a"); }) == 8 * 12 * token);
  CHECK(planned([](RunConfig& config) { config.training.samples = {}; }) == 0);
}

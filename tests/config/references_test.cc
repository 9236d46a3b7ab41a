#include "config/sample.h"

using namespace tokamak;
using Catch::Contains;
using Catch::Equals;

namespace {

RunConfig sample_with(const std::string& lines, const std::vector<std::string>& overrides = {}) {
  return parse_config(sample_and(lines), "c.yaml", overrides);
}

}  // namespace

TEST_CASE("a reference is replaced by another key's value") {
  const RunConfig config = sample_with("checkpoint:\n  interval: ${training.max_steps}\n");
  CHECK(config.checkpoint.interval == TrainingLength::steps(100));
}

TEST_CASE("a default that refers to a key follows it") {
  CHECK(sample_with("run:\n  name: alpha").run.output_dir == "runs/alpha");
  CHECK(sample_with("run:\n  seed: 3").run.output_dir == "runs/run");
}

TEST_CASE("references are resolved after overrides, and to defaults, chains and parts of text too") {
  const std::string lines = "run:\n  name: lr-${optimizer.lr}-${run.seed}\n  output_dir: out/${run.name}/x";
  CHECK(sample_with(lines).run.output_dir == "out/lr-0.0003-1234/x");
  CHECK(sample_with(lines, {"optimizer.lr=1e-2", "run.seed=5"}).run.output_dir == "out/lr-1e-2-5/x");
  CHECK(sample_with(lines, {"run.name=seed${ run.seed }"}).run.output_dir == "out/seed1234/x");
}

TEST_CASE("a reference may name an item of a list, a whole list, or a mapping") {
  CHECK(sample_with("run:\n  name: ${data.sources[1].path}").run.name == "other/data");
  const RunConfig config = parse_config(kSample, "c.yaml", {"data.validation=${data.sources}"});
  REQUIRE(config.data.validation.size() == 2);
  CHECK(config.data.validation[1].weight == 3);
  CHECK(parse_config(kSample, "c.yaml", {"data.validation=[\"${data.sources[0]}\"]"}).data.validation[0].path ==
        "some/data");
}

TEST_CASE("a reference to an unknown key names the nearest valid key") {
  CHECK_THAT(
      error_of(sample_and("run:\n  name: ${training.max_stepz}")),
      Equals("c.yaml:15: key 'run.name' (value '${training.max_stepz}') refers to 'training.max_stepz', which is "
             "not a key (did you mean 'max_steps'?)"));
  CHECK_THAT(error_of(sample_and("run:\n  name: ${}")), Contains("a reference is ${section.key}"));
  CHECK_THAT(error_of(sample_and("run:\n  name: ${env:HOME}")), Contains("refers to 'env:HOME', which is not a key"));
}

TEST_CASE("references that chase each other are refused with their round") {
  CHECK_THAT(error_of(sample_and("run:\n  name: a${run.name}")),
             Contains("c.yaml:15: key 'run.name' (value 'a${run.name}') refers to itself: run.name -> run.name"));
  CHECK_THAT(error_of(kSample, {"run.name=${run.output_dir}"}),
             Contains("refers to itself: run.name -> run.output_dir -> run.name") &&
                 Contains("command line: run.name=${run.output_dir}"));
  CHECK_THAT(error_of(sample_and("run:\n  name: ${run}")), Contains("refers to itself"));
}

TEST_CASE("a reference that is not closed, or puts a list into text, is refused") {
  CHECK_THAT(error_of(sample_and("run:\n  name: a${run.seed")), Contains("has '${' without '}'"));
  CHECK_THAT(error_of(sample_and("run:\n  name: a${data.sources}")), Contains("puts a list of 2 into text"));
}

TEST_CASE("a referenced value of the wrong type is reported at the key that refers to it") {
  CHECK_THAT(error_of(sample_and("optimizer:\n  lr: ${run.name}")),
             Equals("c.yaml:15: key 'optimizer.lr' (value 'run') must be a number (for example 0.1, 3e-4 or 5%)"));
}

TEST_CASE("references that would multiply without end are refused by the key that is over the budget") {
  std::string unknown = "x:\n  a0: lol\n";
  for (int i = 1; i < 40; ++i) unknown += str("  a", i, ": \"${x.a", i - 1, "}${x.a", i - 1, "}\"\n");
  CHECK_THAT(error_of(sample_and(unknown)), Contains("key 'x' (value a mapping of 40 keys) is unknown"));

  const std::string hundred = [] {
    std::string text;
    for (int i = 0; i < 100; ++i) text += "${data.sources[0].path}";
    return text;
  }();
  const std::string long_text(20000, 'a');
  CHECK_THAT(error_of(kSample, {"data.sources[0].path=" + long_text, "run.output_dir=" + hundred}),
             Contains("key 'run.output_dir'") && Contains("refers to more than 10000 values, 1048576 characters"));

  std::string lists = "data.validation=[{path: a}";
  for (int i = 1; i < 20; ++i)
    lists += str(", [\"${data.validation[", i - 1, "]}\", \"${data.validation[", i - 1, "]}\"]");
  CHECK_THAT(error_of(kSample, {lists + "]"}), Contains("refers to more than 10000 values"));

  std::string chain = "data.validation=[";
  for (int i = 0; i < 200; ++i) chain += str("\"${data.validation[", i + 1, "]}\", ");
  CHECK_THAT(error_of(kSample, {chain + "{path: a}]"}), Contains("100 keys in a row"));
}

TEST_CASE("hundreds of references within the budget are resolved") {
  std::string list = "data.validation=[{path: a}";
  for (int i = 0; i < 500; ++i) list += ", \"${data.sources[0]}\"";
  CHECK(parse_config(kSample, "c.yaml", {list + "]"}).data.validation.size() == 501);
}

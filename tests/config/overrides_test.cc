#include "config/sample.h"

using namespace tokamak;
using Catch::Contains;
using Catch::Equals;

namespace {

RunConfig with(const std::vector<std::string>& overrides) { return parse_config(kSample, "c.yaml", overrides); }

}  // namespace

TEST_CASE("an override replaces a value of the file or a default") {
  CHECK(with({"model.hidden_size=128"}).model.hidden_size == 128);
  CHECK(with({"optimizer.lr=1e-3"}).optimizer.lr == 1e-3);
  CHECK(with({"training.global_batch_tokens=64Ki"}).training.global_batch_tokens == 65536);
  CHECK(with({"run.name=a b"}).run.name == "a b");
  CHECK(with({"run.name='x=y'"}).run.name == "x=y");
}

TEST_CASE("of two overrides of one key the later counts") { CHECK(with({"run.seed=1", "run.seed=2"}).run.seed == 2); }

TEST_CASE("an override sets an item of a list, also of a default list, or a whole list") {
  CHECK(with({"data.sources[0].weight=2"}).data.sources[0].weight == 2);
  CHECK(with({"data.sources[1].path=p"}).data.sources[1].path == "p");
  CHECK(with({"optimizer.betas[1]=0.999"}).optimizer.betas == std::array<double, 2>{0.9, 0.999});
  CHECK(with({"optimizer.betas=[0.8, 0.9]"}).optimizer.betas == std::array<double, 2>{0.8, 0.9});
  const RunConfig config = with({"data.sources=[{path: new, weight: 7}]"});
  REQUIRE(config.data.sources.size() == 1);
  CHECK(config.data.sources[0].path == "new");
  CHECK(config.data.sources[0].weight == 7);
}

TEST_CASE("overrides may stand for a section that the file lacks") {
  const std::string no_training = kSample.substr(0, kSample.find("training:"));
  const RunConfig config =
      parse_config(no_training, "c.yaml", {"training.max_steps=3", "training.global_batch_tokens=256"});
  CHECK(config.training.max_steps == 3);
}

TEST_CASE("an invalid override is reported as it was written") {
  CHECK_THAT(error_of(kSample, {"optimizer.lrr=1"}),
             Equals("command line: optimizer.lrr=1: key 'optimizer.lrr' (value '1') is unknown (did you mean 'lr'?)"));
  CHECK_THAT(error_of(kSample, {"optimzer.lr=1"}), Contains("key 'optimzer'") && Contains("did you mean 'optimizer'?"));
  CHECK_THAT(error_of(kSample, {"optimizer.lr=fast"}),
             Equals("command line: optimizer.lr=fast: key 'optimizer.lr' (value 'fast') must be a number (for example "
                    "0.1, 3e-4 or 5%)"));
  CHECK_THAT(error_of(kSample, {"optimizer.lr="}), Contains("key 'optimizer.lr' has no value"));
  CHECK_THAT(error_of(kSample, {"optimizer.lr"}),
             Contains("command line: optimizer.lr: an override must be KEY=VALUE"));
  CHECK_THAT(error_of(kSample, {"=1"}), Contains("an override must be KEY=VALUE"));
  CHECK_THAT(error_of(kSample, {"data.sources[x].weight=1"}), Contains("an override must be KEY=VALUE"));
  CHECK_THAT(error_of(kSample, {"data.sources[2].weight=1"}),
             Contains("key 'data.sources' is a list of 2, which has no item 2") && Contains("KEY=[...]"));
  CHECK_THAT(error_of(kSample, {"run.seed[0]=1"}), Contains("key 'run.seed' is '1234', which has no item 0"));
  CHECK_THAT(error_of(kSample, {"run.seed.a=1"}), Contains("key 'run.seed' is '1234', which has no key 'a'"));
  CHECK_THAT(error_of(kSample, {"optimizer.betas=[1"}), Contains("command line: optimizer.betas=[1: not valid YAML"));
}

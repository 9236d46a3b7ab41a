// A run that goes on from a checkpoint with another config: what is refused, what is listed, what says nothing.
#include "config/drift.h"

#include "config/print.h"
#include "config/sample.h"

using namespace tokamak;
using Catch::Contains;

namespace {

std::string refusal(const std::string& saved, const RunConfig& config) {
  try {
    check_changes(saved, config, "runs/a/checkpoints/step-00000010");
  } catch (const Error& error) {
    CHECK(error.exit_code() == 2);
    return str(error.what(), " (", error.hint(), ")");
  }
  return "";
}

}  // namespace

TEST_CASE("the same config changes nothing") {
  const RunConfig config = parse_config(kSample, "c.yaml", {});
  CHECK(check_changes(print_config(config), config, "x").empty());
}

TEST_CASE("each key that alters the function is refused with both values, unless it is allowed") {
  const std::string saved = print_config(parse_config(kSample, "c.yaml", {}));
  const auto [key, was, is] = GENERATE(table<std::string, std::string, std::string>({
      {"model.rope_theta", "10000", "500000"},
      {"model.rms_norm_eps", "1e-5", "1e-6"},
      {"model.num_attention_heads", "4", "8"},
      {"model.hidden_size", "64", "128"},
      {"model.tie_word_embeddings", "false", "true"},
      {"model.rope_scaling.factor", "0", "2"},
      {"model.mup.base_hidden_size", "0", "64"},
      {"data.document_masking", "true", "false"},
  }));
  CAPTURE(key);
  std::vector<std::string> overrides = {key + "=" + is};
  if (key == "model.rope_scaling.factor") overrides.push_back("model.rope_scaling.rope_type=linear");
  const std::string text = refusal(saved, parse_config(kSample, "c.yaml", overrides));
  CHECK_THAT(text, Contains(str(key, ": ", was, " -> ", is)) && Contains("runs/a/checkpoints/step-00000010") &&
                       Contains("checkpoint.allow_changes=[") && Contains(key));
  overrides.push_back("checkpoint.allow_changes=[model.rope_scaling.rope_type, " + key + "]");
  const RunConfig allowed = parse_config(kSample, "c.yaml", overrides);
  CHECK(refusal(saved, allowed).empty());
  CHECK_THAT(join(check_changes(saved, allowed, "x"), "\n"), Contains(str(key, ": ", was, " -> ", is)));
}

TEST_CASE("keys that a run may change as it goes on are listed, and those of each start are not") {
  const std::string saved = print_config(parse_config(kSample, "c.yaml", {}));
  const RunConfig config = parse_config(
      kSample, "c.yaml", {"optimizer.lr=0.5", "checkpoint.interval=7", "run.name=other", "checkpoint.load=none"});
  const std::string lines = join(check_changes(saved, config, "x"), "\n");
  CHECK_THAT(lines, Contains("optimizer.lr: ") && Contains(" -> 0.5") && Contains("checkpoint.interval: ") &&
                        Contains(" -> 7 steps"));
  CHECK_THAT(lines, !Contains("run.name") && !Contains("checkpoint.load"));
  const ConfigChanges changes = compare_configs(saved, config);
  CHECK(changes.harmless.size() == 2);
  CHECK(changes.refused.empty());
}

TEST_CASE("a key of the model that an older version did not know had its default") {
  RunConfig config = parse_config(kSample, "c.yaml", {});
  std::string saved;
  bool of_mup = false;
  for (const std::string& line : split(print_config(config), '\n')) {
    of_mup = line == "  mup:" || (of_mup && starts_with(line, "    "));
    if (!of_mup) saved += line + "\n";
  }
  REQUIRE(saved.size() < print_config(config).size());
  CHECK(refusal(saved, config).empty());
  config.model.mup.base_hidden_size = 64;
  CHECK_THAT(refusal(saved, config), Contains("model.mup.base_hidden_size: 0 -> 64"));
}

TEST_CASE("an average that changes between exponential and plain is refused, unless it has another name") {
  RunConfig config = parse_config(kSample, "c.yaml", {});
  config.averages = {{.name = "ema", .half_life = TrainingLength::tokens(1e9), .every = 8, .start = {}}};
  const std::string saved = print_config(config);
  config.averages[0].half_life = TrainingLength::tokens(2e9);
  CHECK(refusal(saved, config).empty());
  config.averages[0].half_life = {};
  CHECK_THAT(refusal(saved, config), Contains("averages[0].half_life is none, but the average ema of ") &&
                                         Contains("has 1B tokens: only one of them is exponential"));
  config.averages[0].name = "mean";
  CHECK(refusal(saved, config).empty());
}

TEST_CASE("a checkpoint of another version, or without a config, has no changes to refuse") {
  const RunConfig config = parse_config(kSample, "c.yaml", {"model.rope_theta=500000"});
  CHECK(refusal("", config).empty());
  CHECK(refusal("no: [yaml", config).empty());
  CHECK(refusal(print_config(config) + "retired: {key: 1}\n", config).empty());
}

#include "sweep/grid.h"

#include <catch2/catch.hpp>

#include "base/file.h"
#include "config/print.h"
#include "support/temp_dir.h"

using namespace tokamak;
using Catch::Contains;

namespace {

const std::string kConfig = R"(
run: {name: base}
model: {hidden_size: 64, intermediate_size: 172, num_hidden_layers: 2, num_attention_heads: 4, vocab_size: 100}
data: {sequence_length: 128, sources: [{path: some/data}]}
training: {max_steps: 100, global_batch_tokens: 1024}
)";

std::vector<SweepRun> runs_of(const std::vector<std::string>& words, const std::string& config = kConfig) {
  const TempDir directory;
  write_text_atomically(directory.file("c.yaml"), config, Kind::kConfig);
  return plan_sweep(directory.file("c.yaml"), parse_grid(words), "").runs;
}

std::string id_of(const std::vector<std::string>& words, const std::string& config = kConfig) {
  const std::vector<SweepRun> runs = runs_of(words, config);
  REQUIRE(runs.size() == 1);
  return runs[0].row.id;
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace

TEST_CASE("commas separate values, but not inside brackets, braces and quotes") {
  const auto values = [](const std::string& word) { return parse_grid({word}).at(0).values; };
  REQUIRE(values("a.b=1e-3, 2e-3") == std::vector<std::string>{"1e-3", "2e-3"});
  REQUIRE(values("a=[0.9,0.95],[0.9,0.99]") == std::vector<std::string>{"[0.9,0.95]", "[0.9,0.99]"});
  REQUIRE(values("a={b: 1, c: 2},'x,y'") == std::vector<std::string>{"{b: 1, c: 2}", "'x,y'"});
  for (const char* bad : {"a", "=1", "a=", "a=1,,2", "run.name=x", "run.output_dir=x"}) {
    INFO(bad);
    REQUIRE_THROWS_AS(parse_grid({bad}), Error);
  }
  REQUIRE_THROWS_WITH(parse_grid({"a=1", "a=2"}), Contains("given twice"));
}

TEST_CASE("every combination is a run, with its overrides and seed in its config, its row and its ID") {
  const std::vector<SweepRun> runs = runs_of({"optimizer.lr=1e-3,2e-3", "model.num_hidden_layers=2,3", "run.seed=7,8"});
  REQUIRE(runs.size() == 8);
  const SweepRun& second = runs[1];
  REQUIRE_THAT(second.row.id, Catch::StartsWith("num_hidden_layers=2_lr=0.001_seed=8_"));
  REQUIRE(second.row.seed == 8);
  REQUIRE(second.row.overrides.size() == 2);
  REQUIRE(second.config.run.seed == 8);
  REQUIRE(runs[2].config.model.num_hidden_layers == 3);
  REQUIRE(runs[4].config.optimizer.lr == 2e-3);
  REQUIRE(second.config.run.output_dir == "runs/sweeps/base/runs/" + second.row.id);
  REQUIRE(second.config.run.name == second.row.id);
}

TEST_CASE("a plan predicts parameters, steps and tokens") {
  const SweepRun run = runs_of({"optimizer.lr=1e-3"}).at(0);
  // Each layer: q, k, v, o of 64 x 64, gate, up, down of 64 x 172, two norms of 64; one norm at the end.
  REQUIRE(run.row.body == 2 * (4 * 64 * 64 + 3 * 64 * 172 + 2 * 64) + 64);
  REQUIRE(run.row.head == 100 * 64);
  REQUIRE(run.row.total == run.row.body + (run.config.model.tie_word_embeddings ? 1 : 2) * 100 * 64);
  REQUIRE(run.steps == 100);
  REQUIRE(run.tokens == 100 * 1024);
}

TEST_CASE("an ID depends on what the run computes, not on where its files lie or how a number is written") {
  const std::string id = id_of({"optimizer.lr=1e-3"});
  REQUIRE(id_of({"optimizer.lr=0.001"}) == id);
  REQUIRE(id_of({"optimizer.lr=1e-3"}, with(kConfig, "some/data", "other/data")) == id);
  REQUIRE(id_of({"optimizer.lr=1e-3"}, with(kConfig, "name: base", "name: other")) == id);
  REQUIRE(id_of({"optimizer.lr=1e-3"}, kConfig + "precision: {compute: bf16}") == id);  // the default
  REQUIRE(id_of({"optimizer.lr=1e-3"}, with(kConfig, "max_steps: 100", "max_steps: 101")) != id);
  REQUIRE(id_of({"data.sources[0].path=a"}) != id_of({"data.sources[0].path=b"}));
  REQUIRE(id_of({"optimizer.lr=1e-3", "run.seed=2"}) == id_of({"run.seed=2", "optimizer.lr=1e-3"}));
}

TEST_CASE("a value that is given twice is refused") {
  REQUIRE_THROWS_WITH(runs_of({"optimizer.lr=1e-3,0.001"}), Contains("given twice"));
}

TEST_CASE("a run whose recorded config differs is refused, by key; other paths are not") {
  const TempDir sweep;
  SweepRun run = runs_of({"optimizer.lr=1e-3"}).at(0);
  REQUIRE_NOTHROW(expect_same_config(run, sweep.path()));  // it has not begun
  make_directories(run_directory(sweep.path(), run.row.id), Kind::kConfig);
  const auto record = [&](const RunConfig& config) {
    write_text_atomically(run_directory(sweep.path(), run.row.id) + "/config.yaml", print_config(config),
                          Kind::kConfig);
  };
  RunConfig other = run.config;
  other.data.sources[0].path = "moved";
  other.data.cache = "elsewhere";
  record(other);
  REQUIRE_NOTHROW(expect_same_config(run, sweep.path()));
  other.optimizer.weight_decay = 0.3;
  record(other);
  REQUIRE_THROWS_WITH(expect_same_config(run, sweep.path()), Contains("optimizer.weight_decay: 0.3 -> 0.1"));
}

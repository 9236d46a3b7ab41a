// Every kind of invalid config and its error message.
#include <random>

#include "base/file.h"
#include "config/print.h"
#include "config/sample.h"
#include "support/temp_dir.h"

using namespace tokamak;
using Catch::Contains;
using Catch::Equals;

TEST_CASE("the sample is a valid config") {
  const RunConfig config = parse_config(kSample, "c.yaml", {});
  CHECK(config.model.hidden_size == 64);
  REQUIRE(config.data.sources.size() == 2);
  CHECK(config.data.sources[0].weight == 1);
  CHECK(config.data.sources[1].path == "other/data");
  CHECK(config.data.sources[1].weight == 3);
  CHECK(config.optimizer.lr == 3e-4);
}

TEST_CASE("an unknown key is an error with file, line, key, value and the nearest valid key") {
  CHECK_THAT(error_of("model:\n  hiden_size: 512\n" + kSample.substr(7)),
             Equals("c.yaml:2: key 'model.hiden_size' (value '512') is unknown (did you mean 'hidden_size'?)"));
}

TEST_CASE("an unknown section is refused, and so is an unknown key inside a list") {
  CHECK_THAT(error_of(sample_and("optimiser:\n  lr: 1")),
             Equals("c.yaml:14: key 'optimiser' (value a mapping of 1 key) is unknown (did you mean 'optimizer'?)"));
  CHECK_THAT(error_of(kSample, {"data.sources=[{path: a, wieght: 2}]"}),
             Contains("key 'data.sources[0].wieght' (value '2') is unknown (did you mean 'weight'?)"));
}

TEST_CASE("the error for a key in the wrong section names the right one; for an unknown key, the valid ones") {
  CHECK_THAT(error_of(sample_and("  lr: 0.1")),
             Contains("key 'training.lr'") && Contains("did you mean 'optimizer.lr'?"));
  CHECK_THAT(error_of(sample_and("metrics:\n  zebra: 1")),
             Contains("the keys of 'metrics' are log_interval, tensor_statistics"));
  CHECK_THAT(error_of(sample_and("zebra: 1")), Contains("the sections are run, model, data, training, stages, "
                                                        "optimizer, ... (docs/config.md has all 15)"));
}

TEST_CASE("a key given twice is refused, with both lines") {
  CHECK_THAT(error_of(sample_and("  max_steps: 200")),
             Equals("c.yaml:14: key 'training.max_steps' is given twice, first at c.yaml:12 (remove one of the two)"));
  CHECK_THAT(error_of(sample_and("model:\n  vocab_size: 3")),
             Contains("c.yaml:14: key 'model' is given twice, first at c.yaml:1"));
}

TEST_CASE("a value of the wrong type is refused") {
  const auto [lines, message] = GENERATE(table<std::string, std::string>({
      {"optimizer:\n  lr: fast",
       "c.yaml:15: key 'optimizer.lr' (value 'fast') must be a number (for example 0.1, 3e-4 or 5%)"},
      {"optimizer:\n  lr: [1, 2]", "c.yaml:15: key 'optimizer.lr' (value a list of 2) must be a single value"},
      {"optimizer:\n  lr: {a: 1}", "c.yaml:15: key 'optimizer.lr' (value a mapping of 1 key) must be a single value"},
      {"optimizer:\n  lr:", "c.yaml:15: key 'optimizer.lr' has no value (give it one, or remove the key)"},
      {"optimizer:\n  lr: .nan", "c.yaml:15: key 'optimizer.lr' (value '.nan') must be a number"},
      {"optimizer:\n  lr: 1e999", "c.yaml:15: key 'optimizer.lr' (value '1e999') is out of the range"},
      {"optimizer:\n  betas: 0.9", "c.yaml:15: key 'optimizer.betas' (value '0.9') must be a list (for example [a, b]"},
      {"optimizer:\n  betas: [0.9]",
       "c.yaml:15: key 'optimizer.betas' (value a list of 1) must be a list of exactly 2"},
      {"optimizer:\n  betas:\n    - 0.9\n    - x", "c.yaml:17: key 'optimizer.betas[1]' (value 'x') must be a number"},
      {"optimizer: 5", "c.yaml:14: key 'optimizer' (value '5') must be a mapping of keys to values"},
      {"optimizer: [1]", "c.yaml:14: key 'optimizer' (value a list of 1) must be a mapping of keys to values"},
      {"run:\n  seed: 1.5",
       "c.yaml:15: key 'run.seed' (value '1.5') must come out as a whole number (for example 4096"},
      {"run:\n  seed: 99999999999999999999",
       "c.yaml:15: key 'run.seed' (value '99999999999999999999') is out of range"},
      {"metrics:\n  tensorboard: yes", "c.yaml:15: key 'metrics.tensorboard' (value 'yes') must be true or false"},
      {"runtime:\n  backend: cudaa",
       "c.yaml:15: key 'runtime.backend' (value 'cudaa') must be one of auto, cpu, cuda (did you mean 'cuda'?)"},
      {"runtime:\n  threads_per_rank: 0",
       "c.yaml:15: key 'runtime.threads_per_rank' (value '0') must be auto or at least 1"},
      {"checkpoint:\n  interval: soon",
       "c.yaml:15: key 'checkpoint.interval' (value 'soon') must be a number of steps or tokens, a share of the run, "
       "or a time (for example 2000 steps, 1B tokens, 5%, 90min or 2h)"},
  }));
  CHECK_THAT(error_of(sample_and(lines)), Catch::StartsWith(message));
}

TEST_CASE("a list of data sets must be a list of mappings") {
  CHECK_THAT(error_of(kSample, {"data.sources=a/path"}),
             Contains("key 'data.sources' (value 'a/path') must be a list"));
  CHECK_THAT(error_of(kSample, {"data.sources=[a/path]"}),
             Contains("key 'data.sources[0]' (value 'a/path') must be a mapping"));
}

TEST_CASE("a section without which no run is complete must be there") {
  CHECK_THAT(error_of("run:\n  name: x\n"), Contains("3 errors") && Contains("c.yaml: section 'model' is missing") &&
                                                Contains("section 'data' is missing") &&
                                                Contains("section 'training' is missing"));
  CHECK_THAT(error_of(""), Contains("section 'model' is missing"));
}

TEST_CASE("an empty section has its defaults") {
  CHECK(parse_config(sample_and("optimizer:\ncheckpoint: ~"), "c.yaml", {}).optimizer.lr == 3e-4);
}

TEST_CASE("text that is not YAML names the line") {
  CHECK_THAT(error_of("model:\n  a: 1\n b: 2\n"), Catch::StartsWith("c.yaml:3: not valid YAML: "));
  CHECK_THAT(error_of("model:\n  a: [1, 2\nb: 3\n"), Contains("not valid YAML: "));
  CHECK_THAT(error_of("just words"), Equals("c.yaml: holds no sections but 'just words'"));
  CHECK_THAT(error_of(kSample + "---\nrun:\n  seed: 1\n"),
             Catch::StartsWith("c.yaml:14: the document has ended, and more"));
  CHECK_THAT(error_of(kSample + "}\n"), Contains("c.yaml:14: "));
  CHECK_THAT(error_of("}"), Contains("c.yaml:1: "));
  CHECK_THAT(error_of(std::string(100000, '[')), Contains("not valid YAML: "));
  CHECK_THAT(error_of(sample_and("run: {[a, b]: c}")), Equals("c.yaml:14: a key of 'run' is a list of 2, not a word"));
}

TEST_CASE("an alias is refused, with what to write instead") {
  CHECK_THAT(error_of(sample_and("optimizer: &a\n  lr: [*a]")),
             Equals("c.yaml:15: YAML aliases (*name) are not read (${section.key} takes another key's value)"));
}

TEST_CASE("a removed key is refused, with what to write instead, and ignored in a saved config") {
  const std::string text = sample_and("metrics:\n  jsonl: true");
  CHECK_THAT(error_of(text),
             Equals("c.yaml:15: key 'metrics.jsonl' (value 'true') no longer exists (leave it out: a run "
                    "always writes metrics.jsonl)"));
  CHECK_THAT(error_of(sample_and("activation_checkpoint:\n  kept_layers: [1]")),
             Contains("no longer exists (leave it out: activation_checkpoint.mode: auto"));
  CHECK(print_config(parse_saved_config(text, "m")) == print_config(parse_config(kSample, "c.yaml", {})));
  CHECK_THROWS_WITH(parse_saved_config(sample_and("metrics:\n  json: true"), "m"), Contains("'metrics.json'"));
}

TEST_CASE("several errors are reported together, each with its place") {
  const std::string message = error_of(sample_and("optimizer:\n  lrr: 1\n  eps: x"), {"metrics.tensorboard=5"});
  CHECK_THAT(message, Catch::StartsWith("3 errors in the config:\n") &&
                          Contains("\n  c.yaml:15: key 'optimizer.lrr'") &&
                          Contains("\n  c.yaml:16: key 'optimizer.eps'") &&
                          Contains("\n  command line: metrics.tensorboard=5: key 'metrics.tensorboard' (value '5')"));
}

TEST_CASE("of very many errors the first 20 are named, and the rest counted") {
  std::string lines = "optimizer:\n";
  for (int i = 0; i < 500; ++i) lines += str("  zebra", i, ": 1\n");
  const std::string message = error_of(sample_and(lines));
  CHECK_THAT(message, Catch::StartsWith("500 errors in the config:\n") && Contains("'optimizer.zebra19'") &&
                          !Contains("'optimizer.zebra20'") && Catch::EndsWith("\n  and 480 more"));
}

TEST_CASE("a config of more keys or values than any run has is refused at once") {
  std::string lines = "optimizer:\n";
  for (int i = 0; i < 60000; ++i) lines += str("  zebra", i, ": 1\n");
  CHECK_THAT(error_of(sample_and(lines)), Equals("c.yaml:1015: 'optimizer' has more than 1000 keys"));
  std::string list = "  betas: [0";
  for (int i = 0; i < 100000; ++i) list += ",0";
  CHECK_THAT(error_of(sample_and("optimizer:\n" + list + "]")), Contains("a config has at most 100000 values"));
  CHECK_THAT(error_of(sample_and(std::string(1000, 'k') + ": 1")), Contains("kkk...' (value '1') is unknown"));
}

TEST_CASE("a value that breaks a rule is reported with its line, a default with its section's line") {
  CHECK_THAT(error_of(sample_and("optimizer:\n  eps: 1e-8\n  lr: -1")),
             Equals("c.yaml:16: key 'optimizer.lr' (value -1) must be a positive number"));
  CHECK_THAT(error_of("model:\n  hidden_size: 64\n" + kSample.substr(kSample.find("data:"))),
             Contains("3 errors") && Contains("c.yaml:1: key 'model.intermediate_size' is required"));
  CHECK_THAT(error_of(kSample, {"data.sources[1].weight=0"}),
             Equals("command line: data.sources[1].weight=0: key 'data.sources[1].weight' (value 0) must be a positive "
                    "number"));
}

TEST_CASE("a file is read as text is, and a file that is not there is named") {
  const TempDir dir;
  write_text_atomically(dir.file("a.yaml"), sample_and("optimizer:\n  lr: 5%"), Kind::kData);
  CHECK(load_config(dir.file("a.yaml"), {}).optimizer.lr == 0.05);
  CHECK(load_config(dir.file("a.yaml"), {"optimizer.lr=1"}).optimizer.lr == 1);
  try {
    load_config(dir.file("b.yaml"), {});
    FAIL("read a file that is not there");
  } catch (const Error& error) {
    CHECK(error.kind() == Kind::kConfig);
    CHECK_THAT(error.what(), Contains(dir.file("b.yaml")));
  }
}

TEST_CASE("a damaged config is read or refused with Error(kConfig), never anything else") {
  std::mt19937_64 random(1);
  const std::string bytes = "{}[]:,-?&*!|>'\"%@`#$ \n\t.0159aez~<\x80\xff\x01";
  const std::string whole = sample_and("run:\n  name: a${run.seed}\noptimizer:\n  betas: [0.9, 0.95]");
  for (int i = 0; i < 5000; ++i) {
    std::string text = whole;
    for (uint64_t n = 1 + random() % 4; n > 0; --n) text[random() % text.size()] = bytes[random() % bytes.size()];
    if (random() % 4 == 0) text.resize(random() % text.size());
    CAPTURE(i, text);
    try {
      parse_config(text, "c.yaml", {text.substr(random() % (text.size() + 1), random() % 20)});
    } catch (const Error& error) {
      CHECK(error.kind() == Kind::kConfig);
    }
  }
}

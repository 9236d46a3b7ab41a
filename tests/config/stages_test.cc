// Stages in a config: what they inherit, how their problems are named, and what a resume may change of them.
#include "train/stages.h"
#include "config/drift.h"
#include "config/print.h"
#include "config/sample.h"

using namespace tokamak;
using Catch::Contains;

namespace {

// The sample without training.max_steps, and with three stages from line 13 on.
const std::string kStages =
    kSample.substr(0, kSample.find("  max_steps")) +
    "  global_batch_tokens: 1024\n"
    "stages:\n"
    "  - {name: short, steps: 60}\n"
    "  - name: long\n"
    "    tokens: 9Ki\n"
    "    sequence_length: 512\n"
    "    rope_theta: 5e5\n"
    "    sources: [{path: math/data}]\n"
    "  - {name: anneal, steps: 10, schedule: stage, lr_scheduler: {decay_type: linear, min_lr_factor: 0}}\n";

std::string error_with(const std::string& override_text) { return error_of(kStages, {override_text}); }

}  // namespace

TEST_CASE("a stage takes the keys that it leaves out from the run, after overrides and references") {
  const RunConfig config =
      parse_config(kStages, "c.yaml", {"optimizer.weight_decay=0.25", "optimizer.lr=${optimizer.weight_decay}"});
  REQUIRE(config.stages.size() == 3);
  const StageOptions &first = config.stages[0], &second = config.stages[1], &last = config.stages[2];
  CHECK(first.sequence_length == 128);
  CHECK(first.global_batch_tokens == 1024);
  CHECK(first.sources.size() == 2);
  CHECK(first.sources[1].weight == 3);
  CHECK(first.rope_theta == config.model.rope_theta);
  CHECK(first.weight_decay == 0.25);
  CHECK(first.lr == 0.25);
  CHECK(first.lr_scheduler == config.lr_scheduler);
  CHECK(second.tokens == 9 * 1024);
  CHECK(second.sequence_length == 512);
  CHECK(second.rope_theta == 5e5);
  CHECK(second.sources.at(0).path == "math/data");
  CHECK(second.weight_decay == 0.25);
  CHECK(last.lr_scheduler.decay_type == DecayType::kLinear);
  CHECK(last.lr_scheduler.warmup == ScheduleOptions().warmup);  // a section is taken whole, or written whole
  CHECK(stage_rows(config).back().last_step() == 60 + 9 + 10);
  CHECK(print_config(parse_config(print_config(config), "printed", {})) == print_config(config));
}

TEST_CASE("a problem of a stage names the stage's key, and the line of its value") {
  const auto [override_text, sentence] = GENERATE(table<std::string, std::string>({
      {"stages[1].sequence_length=100",
       "key 'stages[1].global_batch_tokens' (value 1024) must be a multiple of stages[1].sequence_length (100)"},
      {"stages[2]={name: odd, steps: 1, sequence_length: 96, global_batch_tokens: 960}",
       "key 'stages[2].sequence_length' (value 96) must divide the longest stage's 512"},
      {"stages[1].sequence_length=4096", "is longer than model.max_position_embeddings (2048)"},
      {"stages[1].tokens=0", "key 'stages[1].steps' is required (give steps or tokens"},
      {"stages[1].steps=5", "key 'stages[1].tokens' (value 9216) contradicts stages[1].steps (5)"},
      {"stages[0].steps=-1", "key 'stages[0].steps' (value -1) must be at least 0"},
      {"stages[2].name=long", "key 'stages[2].name' (value long) is what stages[1] is called, too"},
      {"stages[2].name='two words'", "key 'stages[2].name' (value two words) must be a word"},
      {"stages[1].lr=0.5", "key 'stages[1].lr' (value 0.5) differs from optimizer.lr"},
      {"stages[1].lr_scheduler={decay_type: wsd}",
       "key 'stages[1].lr_scheduler' (value wsd) differs from lr_scheduler"},
      {"stages[2].lr=-1", "key 'stages[2].lr' (value -1) must be a positive number"},
      {"stages[2].lr_scheduler.warmup=11",
       "key 'stages[2].lr_scheduler.warmup' (value '11 steps') is longer than the run (110% of it)"},
      {"stages[1].sources=[{path: a, weight: 0}]",
       "key 'stages[1].sources[0].weight' (value 0) must be a positive number"},
      {"stages[1].sources=[]", "key 'stages[1].sources' is required"},
      {"stages[1].rope_theta=0", "key 'stages[1].rope_theta' (value 0) must be a positive number"},
      {"stages[1].micro_batch_size=3",
       "key 'stages[1].micro_batch_size' (value 3) must divide the 2 sequences of a step"},
      {"stages[1].sequense_length=3", "key 'stages[1].sequense_length' (value '3') is unknown"},
      {"training.max_steps=10", "key 'training.max_steps' (value 10) contradicts stages"},
      {"training.max_tokens=10", "key 'training.max_tokens' (value 10) contradicts stages"},
      {"data.order=megatron", "key 'data.order' (value megatron) has its samples in one order"},
      {"data.packing=best_fit", "key 'stages[1].sequence_length' (value 512) differs from data.sequence_length (128)"},
      {"data.grid_length=384", "key 'stages[1].sequence_length' (value 512) must divide data.grid_length 384"},
      {"training.batch_warmup.from=300",
       "key 'training.batch_warmup.from' (value 300) must be stages[0].global_batch_tokens (1024) divided by a power of two"},
      {"training.length_warmup.over=300",
       "key 'training.length_warmup.over' (value 300) needs training.length_warmup.from"},
  }));
  CAPTURE(override_text);
  CHECK_THAT(error_with(override_text), Contains(sentence));
}

TEST_CASE("a length in steps is a share of the steps that it is one of, whatever their batches") {
  std::string text = kStages;  // 60 steps of 1024 tokens, 9 of 1024, 10 of 131072
  text.replace(text.find("  - {name: anneal"), std::string::npos,
               "  - {name: anneal, steps: 10, global_batch_tokens: 128Ki}\n");
  const auto accepts = [&](const char* override_text) {
    INFO(override_text);
    CHECK_NOTHROW(parse_config(text, "c.yaml", {override_text}));
  };
  accepts("lr_scheduler.warmup=20 steps");
  accepts("lr_scheduler.warmup=78 steps");
  CHECK_THAT(error_of(text, {"lr_scheduler.warmup=80 steps"}), Contains("is longer than the run"));
  accepts("averages=[{name: ema, start: 78 steps}]");
  CHECK_THAT(error_of(text, {"averages=[{name: ema, start: 80 steps}]"}), Contains("is after the end of the run"));
  accepts("lr_scheduler.decay_start=75 steps");
  CHECK_THAT(error_with("stages[2].lr_scheduler.warmup=11 steps"), Contains("stages[2].lr_scheduler.warmup"));
}

TEST_CASE("a problem of a value that no stage may change is reported once, that of an inherited one for each stage") {
  const auto count = [](const std::string& text, const std::string& part) {
    int found = 0;
    for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  CHECK(count(error_of(kStages, {"run.seed=-1"}), "key 'run.seed'") == 1);
  const std::string error = error_of(kStages, {"optimizer.weight_decay=-1"});
  for (const char* key : {"stages[0].weight_decay", "stages[1].weight_decay", "stages[2].weight_decay"}) {
    CHECK(count(error, key) == 1);
  }
  std::string text = kStages;
  text.replace(text.find("sequence_length: 128"), 20, "sequence_length: 100");
  CHECK_THAT(error_of(text), Contains("c.yaml:7: ") && Contains("stages[0].sequence_length"));
}

TEST_CASE("a resume may change stages to come; the model of the stage that it is in may not change by accident") {
  const RunConfig saved = parse_config(kStages, "c.yaml", {});
  const std::string text = print_config(saved);
  const auto change = [&](const std::string& override_text, int64_t step) -> std::string {
    try {
      return join(check_changes(text, parse_config(kStages, "c.yaml", {override_text}), "checkpoint", step), "; ");
    } catch (const Error& error) {
      return str("refused: ", error.what());
    }
  };
  CHECK(change("stages[1].rope_theta=1e6", 60) == "stages[1].rope_theta: 500000 -> 1000000");
  CHECK_THAT(change("stages[1].rope_theta=1e6", 61),
             Contains("refused: ") && Contains("model.rope_theta: 500000 -> 1000000"));
  CHECK_THAT(change("stages[2].document_masking=false", 70),
             Contains("refused: ") && Contains("data.document_masking"));
  CHECK(change("stages[2].document_masking=false", 69) == "stages[2].document_masking: true -> false");
  CHECK_THAT(change("model.hidden_size=128", 3), Contains("refused: ") && Contains("model.hidden_size"));
  CHECK_THAT(change("model.rope_theta=7e5", 3), Contains("refused: ") && Contains("model.rope_theta"));
  CHECK(change("model.rope_theta=7e5", 61).find("refused") == std::string::npos);  // its stage has its own
  // A run that gives up its stages keeps the model of the one that it was in.
  const RunConfig plain = parse_config(kSample, "c.yaml", {});
  CHECK_NOTHROW(check_changes(text, plain, "checkpoint", 60));
  CHECK_THROWS_WITH(check_changes(text, plain, "checkpoint", 61), Contains("model.rope_theta: 500000 -> 10000"));
}

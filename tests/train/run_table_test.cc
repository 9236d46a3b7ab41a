// The run table and the rows of stages against tables written by hand.
#include "train/run_table.h"

#include <catch2/catch.hpp>

#include "base/strings.h"

using namespace tokamak;

namespace {

StageOptions stage(const char* name, int64_t steps, int64_t length, int64_t sequences) {
  return {.name = name, .steps = steps, .sequence_length = length, .global_batch_tokens = length * sequences};
}

// Stages of short sequences, of long ones, and of a smaller batch: 3 steps of 4 x 8 tokens, 2 of 2 x 32, 4 of 1 x 32.
// 352 tokens, of which the warm-up takes 64.
RunConfig three_stages() {
  RunConfig config;
  config.stages = {stage("short", 3, 8, 4), stage("long", 2, 32, 2), stage("small", 4, 32, 1)};
  config.lr_scheduler.decay_type = DecayType::kLinear;
  config.lr_scheduler.warmup = TrainingLength::steps(2);
  config.lr_scheduler.min_lr_factor = 0;
  config.optimizer.lr = 288;
  return config;
}

struct ExpectedRow {
  std::string name;
  int64_t first_step, steps, length, sequences;
  bool operator==(const ExpectedRow&) const = default;
};

std::vector<ExpectedRow> rows_of(const RunConfig& config) {
  std::vector<ExpectedRow> rows;
  for (const StageRow& row : stage_rows(config)) {
    rows.push_back({row.options.name, row.first_step, row.options.steps, row.options.sequence_length, row.sequences()});
  }
  return rows;
}

std::string said(const std::vector<ExpectedRow>& rows) {
  std::string all;
  for (const ExpectedRow& row : rows) {
    all += str(row.name, " from ", row.first_step, ": ", row.steps, " x ", row.sequences, " x ", row.length, "\n");
  }
  return all;
}

}  // namespace

TEST_CASE("tokens, samples, length, batch and learning rate of each step are those of a table by hand") {
  struct Expected {
    int64_t step, tokens, samples, length, sequences;
    double lr;
  };
  const RunTable table(three_stages());
  for (const Expected& one : {Expected{1, 0, 0, 8, 4, 144},
                              {2, 32, 4, 8, 4, 288},
                              {3, 64, 8, 8, 4, 256},
                              {4, 96, 0, 32, 2, 192},
                              {5, 160, 2, 32, 2, 128},
                              {6, 224, 0, 32, 1, 96},
                              {7, 256, 1, 32, 1, 64},
                              {8, 288, 2, 32, 1, 32},
                              {9, 320, 3, 32, 1, 0},
                              {10, 352, 4, 32, 1, 0}}) {
    INFO("step " << one.step);
    const RunTable::Row row = table.at(one.step);
    CHECK(row.tokens == one.tokens);
    CHECK(row.samples == one.samples);
    CHECK(row.stage->options.sequence_length == one.length);
    CHECK(row.stage->sequences() == one.sequences);
    CHECK(row.lr == Approx(one.lr).margin(1e-12));
    CHECK(table.tokens_after(one.step - 1) == one.tokens);
  }
  CHECK(table.total_steps() == 9);
}

TEST_CASE("a stage with its own schedule has it from its first step to its last; the others follow the run's") {
  RunConfig config = three_stages();
  StageOptions& own = config.stages[1];
  own.schedule = StageSchedule::kStage;
  own.lr = 10;
  own.lr_scheduler = {.warmup = TrainingLength::steps(1), .decay_type = DecayType::kLinear, .min_lr_factor = 0.5};
  config.stages[2].schedule = StageSchedule::kStage;
  config.stages[2].lr = 10;
  config.stages[2].lr_scheduler = {
      .warmup = TrainingLength::steps(0), .decay_type = DecayType::kLinear, .min_lr_factor = 0.2};
  const RunTable table(config), plain(three_stages());
  CHECK(table.at(4).lr == 10);
  CHECK(table.at(5).lr == 5);
  for (const int64_t step : {6, 7, 8, 9}) CHECK(table.at(step).lr == Approx(10.0 - 2 * double(step - 5)));
  for (const int64_t step : {1, 2, 3}) CHECK(table.at(step).lr == plain.at(step).lr);
}

TEST_CASE("a config's run is one row, whose config stays as it is") {
  RunConfig config;
  config.optimizer.lr = 5;
  config.data.sequence_length = 16;
  config.training.global_batch_tokens = 12 * 16;
  config.training.max_tokens = 5 * 12 * 16 + 1;
  const RunTable table(config);
  CHECK(table.total_steps() == 6);
  const RunSteps steps{.total = 6, .tokens_after = [](int64_t step) { return step * 12 * 16; }};
  CHECK(table.at(4).lr == Schedule(config.lr_scheduler, 5, steps).at(4, 4 * 12 * 16));
  CHECK(table.at(4).tokens == 3 * 12 * 16);
  CHECK(table.at(4).samples == 3 * 12);
  CHECK(table.at(100).stage == table.at(1).stage);
  CHECK(config_at_step(config, 3).training.max_tokens == config.training.max_tokens);
}

TEST_CASE("the config of a row has the values of its stage in place of the run's") {
  RunConfig config = three_stages();
  StageOptions& own = config.stages[2];
  own.micro_batch_size = {7};
  own.sources = {{"math", 0.25}};
  own.document_masking = false;
  own.rope_theta = 7e5;
  own.rope_scaling.factor = 3;
  own.weight_decay = 0.7;
  own.lr = 9;
  own.lr_scheduler.min_lr_factor = 0.3;
  own.activation_checkpoint.mode = RecomputeMode::kFull;
  const RunConfig row = config_at_step(config, 6);
  CHECK(row.stages.empty());
  CHECK(row.training.max_steps == 4);
  CHECK(row.training.global_batch_tokens == 32);
  CHECK(row.training.micro_batch_size.value == 7);
  CHECK(row.data.sequence_length == 32);
  CHECK(row.data.sources.at(0).path == "math");
  CHECK(!row.data.document_masking);
  CHECK(row.model.rope_theta == 7e5);
  CHECK(row.model.rope_scaling.factor == 3);
  CHECK(row.optimizer.weight_decay == 0.7);
  CHECK(row.activation_checkpoint.mode == RecomputeMode::kFull);
  CHECK(row.optimizer.lr == 288);  // the stage follows the run's schedule
  own.schedule = StageSchedule::kStage;
  CHECK(config_at_step(config, 9).optimizer.lr == 9);
  CHECK(config_at_step(config, 9).lr_scheduler.min_lr_factor == 0.3);
  CHECK(config_at_step(config, 5).data.document_masking);
  CHECK(config_at_step(config, 0).data.sequence_length == 8);
  CHECK(config_at_step(config, 99).data.sequence_length == 32);
}

TEST_CASE("a warm-up doubles the batch in equal shares of its tokens, each a whole number of steps") {
  RunConfig config;
  config.data.sequence_length = 8;
  config.training.global_batch_tokens = 256;
  config.training.max_steps = 100;
  config.training.batch_warmup = {.from = 32, .over = 1000};  // doubles after 334, 667 and 1000 tokens
  // 11 steps of 32 are 352, 5 of 64 then 672, 3 of 128 then 1056.
  CHECK(said(rows_of(config)) ==
        said({{"run.0", 1, 11, 8, 4}, {"run.1", 12, 5, 8, 8}, {"run.2", 17, 3, 8, 16}, {"run.3", 20, 81, 8, 32}}));
  CHECK(RunTable(config).total_steps() == 100);
  config.training.max_steps = 0;
  config.training.max_tokens = 1057;
  CHECK(RunTable(config).total_steps() == 20);
}

TEST_CASE(
    "a warm-up of the length keeps the tokens of a step, belongs to the first stage, and may meet one of the batch") {
  RunConfig config = three_stages();
  config.stages[0] = stage("short", 30, 32, 4);
  config.training.length_warmup = {.from = 8, .over = 512};
  CHECK(said(rows_of(config)) == said({{"short.0", 1, 2, 8, 16},
                                       {"short.1", 3, 2, 16, 8},
                                       {"short.2", 5, 26, 32, 4},
                                       {"long", 31, 2, 32, 2},
                                       {"small", 33, 4, 32, 1}}));
  config.training.batch_warmup = {.from = 64, .over = 256};
  CHECK(said(rows_of(config)) == said({{"short.0", 1, 4, 8, 8},
                                       {"short.1", 5, 2, 16, 8},
                                       {"short.2", 7, 24, 32, 4},
                                       {"long", 31, 2, 32, 2},
                                       {"small", 33, 4, 32, 1}}));
  for (const StageRow& row : stage_rows(config))
    CHECK(row.stage == (row.first_step < 31 ? 0 : row.first_step < 33 ? 1 : 2));
}

TEST_CASE("a warm-up that is as long as its stage is refused") {
  RunConfig config;
  config.data.sequence_length = 8;
  config.training.global_batch_tokens = 256;
  config.training.max_tokens = 900;
  config.training.batch_warmup = {.from = 32, .over = 1000};
  CHECK_THROWS_WITH(stage_rows(config), Catch::Contains("training.batch_warmup.over") && Catch::Contains("900 tokens"));
}

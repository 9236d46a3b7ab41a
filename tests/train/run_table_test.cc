// The run table against a table written by hand.
#include "train/run_table.h"

#include <catch2/catch.hpp>

using namespace tokamak;

namespace {

// Stages of short sequences, of long ones, and of a smaller batch: 3 steps of 4 x 8 tokens, 2 of 2 x 32, 4 of 1 x 32.
// 352 tokens, of which the warm-up takes 64.
RunTable three_stages() {
  ScheduleOptions options;
  options.decay_type = DecayType::kLinear;
  options.warmup = TrainingLength::steps(2);
  options.min_lr_factor = 0;
  return {{{.until_step = 3, .length = 8, .sequences = 4},
           {.until_step = 5, .length = 32, .sequences = 2},
           {.until_step = 9, .length = 32, .sequences = 1}},
          options,
          288};
}

}  // namespace

TEST_CASE("tokens, samples, length, batch and learning rate of each step are those of a table by hand") {
  struct Expected {
    int64_t step, tokens, samples, length, sequences;
    double lr;
  };
  const RunTable table = three_stages();
  for (const Expected& one : {Expected{1, 0, 0, 8, 4, 144},
                              {2, 32, 4, 8, 4, 288},
                              {3, 64, 8, 8, 4, 256},
                              {4, 96, 12, 32, 2, 192},
                              {5, 160, 14, 32, 2, 128},
                              {6, 224, 16, 32, 1, 96},
                              {7, 256, 17, 32, 1, 64},
                              {8, 288, 18, 32, 1, 32},
                              {9, 320, 19, 32, 1, 0},
                              {10, 352, 20, 32, 1, 0}}) {
    INFO("step " << one.step);
    const RunTable::Row row = table.at(one.step);
    CHECK(row.tokens == one.tokens);
    CHECK(row.samples == one.samples);
    CHECK(row.stage->length == one.length);
    CHECK(row.stage->sequences == one.sequences);
    CHECK(row.lr == Approx(one.lr).margin(1e-12));
    CHECK(table.tokens_after(one.step - 1) == one.tokens);
  }
  CHECK(table.total_steps() == 9);
}

TEST_CASE("a config's run is one stage") {
  RunConfig config;
  config.optimizer.lr = 5;
  const RunTable table(config, {.length = 16, .sequences_per_step = 12, .sequences_per_rank = 4, .total_steps = 6});
  CHECK(table.total_steps() == 6);
  const RunSteps steps{.total = 6, .tokens_after = [](int64_t step) { return step * 12 * 16; }};
  CHECK(table.at(4).lr == Schedule(config.lr_scheduler, 5, steps).at(4, 4 * 12 * 16));
  CHECK(table.at(4).tokens == 3 * 12 * 16);
  CHECK(table.at(4).samples == 3 * 12);
  CHECK(table.at(100).stage == table.at(1).stage);
}

#include "train/run_table.h"

#include <algorithm>

#include "base/error.h"

namespace tokamak {

namespace {

std::vector<RunStage> not_empty(std::vector<RunStage> stages) {
  TOKAMAK_CHECK(!stages.empty(), "a run without a stage");
  return stages;
}

}  // namespace

RunTable::RunTable(std::vector<RunStage> stages, const ScheduleOptions& schedule, double peak_lr)
    : stages_(not_empty(std::move(stages))), schedule_(schedule, peak_lr, run_steps()) {}

RunTable::RunTable(const RunConfig& config, const GlobalBatch& batch)
    : RunTable({{.until_step = batch.total_steps, .length = batch.length, .sequences = batch.sequences_per_step}},
               config.lr_scheduler, config.optimizer.lr) {}

RunSteps RunTable::run_steps() const {
  return {.total = total_steps(), .tokens_after = [this](int64_t step) { return tokens_after(step); }};
}

RunTable::Row RunTable::at(int64_t step) const {
  Row row = without_lr(step);
  row.lr = schedule_.at(step, row.tokens + row.stage->tokens_per_step());
  return row;
}

RunTable::Row RunTable::without_lr(int64_t step) const {
  Row row;
  int64_t first = 1;
  for (const RunStage& stage : stages_) {
    row.stage = &stage;
    const bool is_last = &stage == &stages_.back();
    const int64_t before = (is_last ? step : std::min(step, stage.until_step + 1)) - first;
    row.tokens += before * stage.tokens_per_step();
    row.samples += before * stage.sequences;
    if (step <= stage.until_step) break;
    first = stage.until_step + 1;
  }
  return row;
}

}  // namespace tokamak

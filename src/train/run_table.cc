#include "train/run_table.h"

#include <algorithm>

#include "base/error.h"

namespace tokamak {

RunTable::RunTable(std::vector<RunStage> stages, const Schedule& schedule)
    : stages_(std::move(stages)), schedule_(schedule) {
  TOKAMAK_CHECK(!stages_.empty(), "a run without a stage");
}

RunTable::RunTable(const RunConfig& config, const GlobalBatch& batch)
    : RunTable({{.until_step = batch.total_steps, .length = batch.length, .sequences = batch.sequences_per_step}},
               Schedule(config.lr_scheduler, config.optimizer.lr, batch.total_steps, batch.tokens_per_step())) {}

RunTable::Row RunTable::at(int64_t step) const {
  Row row{.lr = schedule_.at(step)};
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

#include "train/run_table.h"

namespace tokamak {

RunTable::RunTable(const RunConfig& config) : rows_(stage_rows(config)) {
  int64_t tokens = 0;
  for (const StageRow& row : rows_) {
    tokens_before_.push_back(tokens);
    tokens += row.options.steps * row.options.global_batch_tokens;
  }
  const auto count = static_cast<int64_t>(rows_.size());
  int64_t of_run = -1;  // the run's own schedule, if a row follows it
  for (int64_t r = 0; r < count; ++r) {
    const StageRow& row = rows_[r];
    const bool is_own = row.options.schedule == StageSchedule::kStage;
    const bool goes_on = is_own && r > 0 && rows_[r - 1].stage == row.stage;
    if (is_own && !goes_on) {
      int64_t end = r + 1;
      while (end < count && rows_[end].stage == row.stage) ++end;
      schedules_.push_back(schedule_from(r, end, row.options.lr_scheduler, row.options.lr));
    }
    if (!is_own && of_run < 0) {
      of_run = static_cast<int64_t>(schedules_.size());
      schedules_.push_back(schedule_from(0, count, config.lr_scheduler, config.optimizer.lr));
    }
    scheduled_.push_back(is_own ? static_cast<int64_t>(schedules_.size()) - 1 : of_run);
  }
}

RunTable::Scheduled RunTable::schedule_from(int64_t first_row, int64_t end_row, const ScheduleOptions& options,
                                            double peak) const {
  const int64_t steps = rows_[first_row].first_step - 1, tokens = tokens_before_[first_row];
  const RunSteps span = {.total = rows_[end_row - 1].last_step() - steps,
                         .tokens_after = [=, this](int64_t step) { return tokens_after(steps + step) - tokens; }};
  return {steps, tokens, Schedule(options, peak, span)};
}

RunSteps RunTable::run_steps() const {
  return {.total = total_steps(), .tokens_after = [this](int64_t step) { return tokens_after(step); }};
}

RunTable::Row RunTable::at(int64_t step) const {
  Row row = without_lr(step);
  const Scheduled& scheduled = schedules_[scheduled_[row.stage - rows_.data()]];
  row.lr = scheduled.schedule.at(step - scheduled.steps,
                                 row.tokens + row.stage->options.global_batch_tokens - scheduled.tokens);
  return row;
}

RunTable::Row RunTable::without_lr(int64_t step) const {
  const int64_t r = row_of_step(rows_, step);
  const StageRow& stage = rows_[r];
  const int64_t before = step - stage.first_step;
  return {.tokens = tokens_before_[r] + before * stage.options.global_batch_tokens,
          .samples = before * stage.sequences(),
          .stage = &stage};
}

}  // namespace tokamak

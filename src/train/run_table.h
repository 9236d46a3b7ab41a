// The table of a run's steps: tokens and samples before each, its row of stages and its learning rate. A pure function
// of the config, used wherever a step is converted into tokens or samples.
#pragma once

#include <cstdint>
#include <vector>

#include "optim/schedule.h"
#include "train/stages.h"

namespace tokamak {

class RunTable {
 public:
  // `config` is valid (config/validate.h). Error(kConfig) as Schedule and stage_rows.
  explicit RunTable(const RunConfig& config);

  struct Row {
    int64_t tokens = 0;   // trained on before the step
    int64_t samples = 0;  // read before the step, in its row of stages
    double lr = 0;
    const StageRow* stage = nullptr;  // of this table
  };
  Row at(int64_t step) const;  // 1, 2, ...; steps after the last one are of the last row
  int64_t tokens_after(int64_t step) const { return without_lr(step + 1).tokens; }
  int64_t total_steps() const { return rows_.back().last_step(); }
  RunSteps run_steps() const;  // while this table lives

  const std::vector<StageRow>& rows() const { return rows_; }
  const Schedule& schedule(int64_t row) const { return schedules_[scheduled_[row]].schedule; }

 private:
  struct Scheduled {
    int64_t steps = 0;   // before the schedule begins
    int64_t tokens = 0;  // likewise
    Schedule schedule;
  };
  Row without_lr(int64_t step) const;
  Scheduled schedule_from(int64_t first_row, int64_t end_row, const ScheduleOptions& options, double peak) const;

  std::vector<StageRow> rows_;
  std::vector<int64_t> tokens_before_;  // of each row
  std::vector<Scheduled> schedules_;
  std::vector<int64_t> scheduled_;  // of each row, its index in schedules_
};

}  // namespace tokamak

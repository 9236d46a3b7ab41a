// The table of a run's steps: tokens and samples before each, its length, batch and learning rate. A pure
// function of the config, used wherever a step is converted into tokens or samples. A run has one stage today.
#pragma once

#include <cstdint>
#include <vector>

#include "optim/schedule.h"
#include "train/batch_shape.h"
#include "train/run_config.h"

namespace tokamak {

// Consecutive steps with the same batch.
struct RunStage {
  int64_t until_step = 0;  // the stage's last step
  int64_t length = 0;      // T
  int64_t sequences = 0;   // G, read in each step

  int64_t tokens_per_step() const { return sequences * length; }
};

class RunTable {
 public:
  // At least one stage, in the order of their steps. The schedule covers all of them. Error(kConfig) as Schedule.
  RunTable(std::vector<RunStage> stages, const ScheduleOptions& schedule, double peak_lr);
  RunTable(const RunConfig& config, const GlobalBatch& batch);

  struct Row {
    int64_t tokens = 0;   // trained on before the step
    int64_t samples = 0;  // read before the step
    double lr = 0;
    const RunStage* stage = nullptr;  // of this table
  };
  Row at(int64_t step) const;  // 1, 2, ...; steps after the last one are of the last stage
  int64_t tokens_after(int64_t step) const { return without_lr(step + 1).tokens; }
  int64_t total_steps() const { return stages_.back().until_step; }
  const Schedule& schedule() const { return schedule_; }
  RunSteps run_steps() const;  // while this table lives

 private:
  Row without_lr(int64_t step) const;

  std::vector<RunStage> stages_;
  Schedule schedule_;
};

}  // namespace tokamak

// A start opens these before it allocates memory: the data, the locked checkpoint directory and the records. An error
// that ends the start from here on is recorded (RunRecords::or_record_end).
#pragma once

#include <optional>
#include <vector>

#include "checkpoint/checkpointer.h"
#include "comm/world.h"
#include "resilience/progress.h"
#include "train/run_data.h"
#include "train/run_records.h"
#include "train/run_table.h"

namespace tokamak {

// The state that a trainer begins with, and the checkpoint that holds it.
struct RunPoint {
  RunState state;
  std::optional<CheckpointReader> checkpoint;  // empty: the weights are drawn from run.seed
  bool is_border = false;                      // this start has saved it, at the end of a row of stages
};

class OpenRun {
 public:
  // Collective; `complete` is a complete config (run_plan.h). SharedError if the data of a stage cannot be read or the
  // directory not be locked. `watched` outlives the run; nullptr: no watchdog.
  OpenRun(World& world, const RunConfig& complete, StartFacts given, RunProgress* watched);

  // Collective, once. Chooses the checkpoint that the start resumes from, and opens the row of stages that follows it.
  // SharedError(kData) if the checkpoint belongs to other data, SharedError(kConfig) if to other stages.
  void find_start();
  // Collective, at the end of a row whose last state is saved: opens the next one.
  void next_row();
  RunPoint take_point() { return std::exchange(point_, {}); }  // once after find_start() and after next_row()

  bool is_at_border() const { return point_.is_border; }

  const StageRow& row() const { return table.rows()[row_]; }
  int64_t first_state_of_row() const { return row().first_step - 1; }  // the step after which it begins
  // The state of a checkpoint in the open row, or at its beginning. Collective. SharedError(kData) if it belongs to
  // other data.
  RunState state_of(const TrainingPoint& saved) const;
  bool is_last_row() const { return row_ + 1 == std::ssize(table.rows()); }
  RunConfig row_config() const { return config_of_row(config, row()); }

  const RunConfig config;  // of the whole run
  StartFacts facts;
  RunProgress* const progress;  // ticks as files of checkpoints are read and written
  const RunTable table;
  std::optional<RunData> data;  // of the row; never empty
  Checkpointer checkpointer;
  RunRecords records;
  int64_t most_planned = 0;  // bytes of device memory, of the rows that this start has trained

 private:
  void open_row(int64_t row, const std::vector<LeftOut>& left_out);  // by the rows before it
  void restore();                                                    // the state of point_.checkpoint
  void expect_same_tokens(const RunState& state) const;

  Comm& comm_;
  int64_t row_ = 0;
  RunPoint point_;
};

}  // namespace tokamak

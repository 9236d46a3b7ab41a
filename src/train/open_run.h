// The data, the directory, which is locked, and the records of a start, opened before it takes memory. An error that
// ends the start from here on is recorded (RunRecords::or_record_end).
#pragma once

#include "checkpoint/checkpointer.h"
#include "comm/world.h"
#include "resilience/progress.h"
#include "train/run_data.h"
#include "train/run_records.h"
#include "train/run_table.h"

namespace tokamak {

struct OpenRun {
  // Collective; `config` is complete (run_plan.h). SharedError if the data cannot be read or the directory not be
  // locked. `progress` outlives the run; nullptr: no watchdog.
  OpenRun(World& world, const RunConfig& config, const GlobalBatch& batch, StartFacts given, RunProgress* progress);

  StartFacts facts;
  RunProgress* const progress;  // ticks with the files of checkpoints
  RunTable table;
  RunData data;
  Checkpointer checkpointer;
  RunRecords records;
};

}  // namespace tokamak

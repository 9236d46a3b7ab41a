// A start opens these before it allocates memory: the data, the locked checkpoint directory and the records. An error
// that ends the start from here on is recorded (RunRecords::or_record_end).
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
  // locked. `watched` outlives the run; nullptr: no watchdog.
  OpenRun(World& world, const RunConfig& config, const GlobalBatch& batch, StartFacts given, RunProgress* watched);

  StartFacts facts;
  RunProgress* const progress;  // ticks as files of checkpoints are read and written
  RunTable table;
  RunData data;
  Checkpointer checkpointer;
  RunRecords records;
};

}  // namespace tokamak

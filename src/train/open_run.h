// The data, the directory, which is locked, and the records of a start, opened before it takes memory. An error that
// ends the start from here on is recorded (RunRecords::or_record_end).
#pragma once

#include <string>

#include "comm/world.h"
#include "resilience/progress.h"
#include "train/run_checkpoints.h"
#include "train/run_data.h"
#include "train/run_records.h"
#include "train/run_table.h"

namespace tokamak {

struct OpenOptions {
  std::string program;              // its version, for the records
  std::string command;              // the command line, for the records
  std::string config_text;          // the config as config/ prints it, for the run directory and the checkpoints
  std::vector<NamedText> settings;  // the config, key by key, for the records
  StartupClock startup;             // of this start, with its phases so far
  RunProgress* progress = nullptr;  // ticks with the files of checkpoints; outlives the run; nullptr: no watchdog
};

struct OpenRun {
  // Collective; `config` is complete (run_plan.h). SharedError if the data cannot be read or the directory not be
  // locked.
  OpenRun(World& world, const RunConfig& config, const GlobalBatch& batch, OpenOptions opened);

  OpenOptions options;
  RunTable table;
  RunData data;
  RunCheckpoints checkpoints;
  RunRecords records;
};

}  // namespace tokamak

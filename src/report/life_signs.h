// Infers how a last start stands that recorded no end: from status.json, its lock and the age of its last record.
// Silence alone proves nothing: only a start whose lock is free counts as killed.
#pragma once

#include <optional>

#include "monitor/run_status.h"
#include "report/run_report.h"

namespace tokamak {

struct LifeSigns {
  std::optional<RunStatus> status;
  std::optional<bool> holds_lock;  // read before the records; empty: not known from here
  double silent = 0;               // seconds since the newest record; 0: no record at all
};

// Sets `end` and `cause` of a start that is starting or running by its records. `interval`: seconds of its newest
// interval.
void judge(StartReport& start, double interval, const LifeSigns& signs);

}  // namespace tokamak

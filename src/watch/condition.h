// How a run stands: by its records, status.json, the watchdog's files and its lock, each of which may be missing, or be
// older than the run. What the run said of its own end counts most, then the signs of life that a report goes by, too
// (report/life_signs.h), in its words.
#pragma once

#include <optional>

#include "monitor/run_status.h"
#include "report/hang_files.h"
#include "report/life_signs.h"
#include "watch/run_view.h"

namespace tokamak {

struct Signs {
  const RunView& view;
  std::optional<RunStatus> status;
  std::optional<FoundHang> hang;   // the newest
  std::optional<bool> holds_lock;  // whether a process of the run lives; nothing where that cannot be told from here
  double silent = 0;               // seconds since the newest record
};

// Empty: it has no records yet.
std::optional<Standing> condition_of(const Signs& signs);

}  // namespace tokamak

// How a start stands that has said nothing of its end: by status.json, by its lock, and by how long it has been silent. One
// whose lock is free was killed; one that says nothing is not judged.
#pragma once

#include <optional>
#include <string>

#include "monitor/run_status.h"
#include "report/run_report.h"

namespace tokamak {

struct LifeSigns {
  std::optional<RunStatus> status;
  std::optional<bool> holds_lock;  // seen before the records were read; nothing where that cannot be told from here
  double silent = 0;               // seconds since the newest record
  double interval = 0;             // seconds of the newest interval; 0: not known
};

struct Standing {
  StartEnd end = StartEnd::kRunning;
  std::string why;  // "" where the word says all

  const char* word() const { return kStartEndNames.at(static_cast<size_t>(end)); }
  bool is_over() const { return end >= StartEnd::kDone; }
};

Standing standing_of(const StartReport& start, const LifeSigns& signs);

// What status.json says of its start's end; kRunning where it says none.
Standing standing_of(const RunStatus& status);

}  // namespace tokamak

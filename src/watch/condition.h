// How a run stands: by its records, status.json, the watchdog's files and its lock, each of which may be missing, or be
// older than the run. What the run said of its own end counts most, then the signs of life that a report goes by, too
// (report/life_signs.h), in its words.
#pragma once

#include <optional>
#include <string>

#include "monitor/run_status.h"
#include "report/hang_files.h"
#include "watch/run_view.h"

namespace tokamak {

struct Condition {
  enum class State { kEmpty, kStarting, kRunning, kSilent, kDone, kStopped, kFailed, kHung, kKilled };
  State state = State::kEmpty;
  std::string why;  // "" where the word says all

  bool is_over() const { return state >= State::kDone; }
};

struct Signs {
  const RunView& view;
  std::optional<RunStatus> status;
  std::optional<FoundHang> hang;   // the newest
  std::optional<bool> holds_lock;  // whether a process of the run lives; nothing where that cannot be told from here
  double silent = 0;               // seconds since the newest record
};

Condition condition_of(const Signs& signs);

const char* word_of(Condition::State state);

}  // namespace tokamak

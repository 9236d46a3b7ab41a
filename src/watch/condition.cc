#include "watch/condition.h"

namespace tokamak {

namespace {

// A process that was killed has left its status as it was.
Standing without_records(const RunStatus& status, std::optional<bool> holds_lock) {
  const bool is_gone = status.state == RunStatus::State::kRunning && holds_lock == false;
  return is_gone ? Standing{StartEnd::kKilled, "no process holds its lock"} : standing_of(status);
}

// By the last record of the start.
Standing of_end(const StartReport& start) {
  if (start.end == StartEnd::kStopped) return {StartEnd::kStopped, start.cause + "; start it again to go on"};
  return {start.end, start.cause};
}

}  // namespace

std::optional<Standing> condition_of(const Signs& signs) {
  const StartAccount* last = signs.view.last_start();
  if (last == nullptr) {
    if (!signs.status) return std::nullopt;
    return without_records(*signs.status, signs.holds_lock);
  }
  if (signs.view.has_ended()) {
    if (signs.view.is_done()) return Standing{StartEnd::kDone, ""};
    StartAccount closed = *last;
    closed.close(nullptr, true);
    return of_end(closed.report());
  }
  const StartReport& start = last->report();
  const Standing standing = standing_of(start, {.status = signs.status,
                                                .holds_lock = signs.holds_lock,
                                                .silent = signs.silent,
                                                .interval = signs.view.interval_seconds()});
  const bool has_said = standing.end >= StartEnd::kDone && standing.end <= StartEnd::kFailed;
  if (!has_said && signs.hang && signs.hang->time >= start.exec) {
    return Standing{StartEnd::kHung, signs.hang->headline.empty() ? signs.hang->name : signs.hang->headline};
  }
  return standing;
}

}  // namespace tokamak

#include "report/life_signs.h"

#include <algorithm>

#include "base/strings.h"

namespace tokamak {

namespace {

constexpr double kSilentSeconds = 120, kSilentIntervals = 10;  // silent: longer than both

// A full disk may have refused the last record; status.json is then the only trace of the end.
void take_status(StartReport& start, const RunStatus& status) {
  start.cause = str("exit ", status.code, status.cause.empty() ? "" : ": ", status.cause);
  if (status.state == RunStatus::State::kStopped) start.end = StartEnd::kStopped;
  if (status.state == RunStatus::State::kFailed) start.end = StartEnd::kFailed;
  if (status.state == RunStatus::State::kDone) start.end = StartEnd::kDone, start.cause = "";
}

}  // namespace

void judge(StartReport& start, double interval, const LifeSigns& signs) {
  if (start.end != StartEnd::kStarting && start.end != StartEnd::kRunning) return;
  const bool is_of_start = signs.status && signs.status->incarnation == start.incarnation;
  if (is_of_start && signs.status->state != RunStatus::State::kRunning) return take_status(start, *signs.status);
  const std::string silence = signs.silent > 0 ? "no record for " + human_duration(signs.silent) : "";
  // A process writes its last record before it releases the lock.
  if (signs.holds_lock == false) {
    start.end = StartEnd::kKilled;
    start.cause = str("no process holds its lock", silence.empty() ? "" : ", ", silence);
  } else if (signs.silent > std::max(kSilentSeconds, kSilentIntervals * interval)) {
    start.end = StartEnd::kSilent;
    start.cause = silence;
    if (signs.holds_lock == true) {
      start.cause += ", its process lives";
    } else if (!start.hosts.empty()) {
      start.cause += "; it was on " + start.hosts;
    }
  }
}

}  // namespace tokamak

#include "report/life_signs.h"

#include <algorithm>

#include "base/strings.h"

namespace tokamak {

namespace {

constexpr double kSilentSeconds = 120, kSilentIntervals = 10;  // the longer of both without a record is silence

}  // namespace

Standing standing_of(const RunStatus& status) {
  switch (status.state) {
    case RunStatus::State::kDone:
      return {StartEnd::kDone, ""};
    case RunStatus::State::kStopped:
      return {StartEnd::kStopped, str("exit ", status.code)};
    case RunStatus::State::kFailed:
      return {StartEnd::kFailed, str("exit ", status.code, status.cause.empty() ? "" : ": ", status.cause)};
    case RunStatus::State::kRunning:
      break;
  }
  return {StartEnd::kRunning, ""};
}

Standing standing_of(const StartReport& start, const LifeSigns& signs) {
  // A disk that was full has no last record.
  const bool is_of_start = signs.status && signs.status->incarnation == start.incarnation;
  if (is_of_start && signs.status->state != RunStatus::State::kRunning) return standing_of(*signs.status);
  const std::string silence = str("no record for ", human_duration(signs.silent));
  // A process that ends writes its last record before it gives up the lock.
  if (signs.holds_lock == false) return {StartEnd::kKilled, "no process holds its lock, " + silence};
  if (signs.silent > std::max(kSilentSeconds, kSilentIntervals * signs.interval)) {
    const std::string alive = signs.holds_lock == true ? ", its process lives"
                              : start.hosts.empty()    ? ""
                                                       : str("; it was on ", start.hosts);
    return {StartEnd::kSilent, silence + alive};
  }
  return {start.ready ? StartEnd::kRunning : StartEnd::kStarting, ""};
}

}  // namespace tokamak

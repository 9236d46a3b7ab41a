#include "report/life_signs.h"

#include <algorithm>

#include "base/strings.h"

namespace tokamak {

namespace {

constexpr double kSilentSeconds = 120, kSilentIntervals = 10;  // the longer of both without a record is silence
constexpr double kGoneSeconds = 3, kGoneIntervals = 3;         // and this much, where no process holds the lock

}  // namespace

Standing standing_of(const RunStatus& status) {
  switch (status.state) {
    case RunStatus::State::kDone:
      return {StartEnd::kDone, ""};
    case RunStatus::State::kStopped:
      return {StartEnd::kStopped, str("exit ", status.code)};
    case RunStatus::State::kFailed:
      return {StartEnd::kFailed, str("exit ", status.code)};
    case RunStatus::State::kRunning:
      break;
  }
  return {StartEnd::kRunning, ""};
}

Standing standing_of(const StartReport& start, const LifeSigns& signs) {
  // A disk that was full has no last record.
  const bool is_of_start = signs.status && signs.status->incarnation == start.incarnation;
  if (is_of_start && signs.status->state != RunStatus::State::kRunning) return standing_of(*signs.status);
  const auto is_silent_for = [&](double seconds, double intervals) {
    return signs.silent > std::max(seconds, intervals * signs.interval);
  };
  const std::string silence = str("no record for ", human_duration(signs.silent));
  // A process of another container may be invisible from here; its records are not.
  if (signs.holds_lock == false && is_silent_for(kGoneSeconds, kGoneIntervals)) {
    return {StartEnd::kKilled, "no process holds its lock, " + silence};
  }
  if (is_silent_for(kSilentSeconds, kSilentIntervals)) {
    const std::string alive = signs.holds_lock == true ? ", its process lives"
                              : start.hosts.empty()    ? ""
                                                       : str("; it was on ", start.hosts);
    return {StartEnd::kSilent, silence + alive};
  }
  return {start.ready ? StartEnd::kRunning : StartEnd::kStarting, ""};
}

}  // namespace tokamak

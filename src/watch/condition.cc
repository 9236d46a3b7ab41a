#include "watch/condition.h"

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace tokamak {

namespace {

using State = Condition::State;

constexpr double kSilentSeconds = 120, kSilentIntervals = 10;  // the longer of both without a record is silence
constexpr double kGoneSeconds = 3, kGoneIntervals = 3;         // and this much, where no process holds the lock

bool is_silent_for(const Signs& signs, double seconds, double intervals) {
  return signs.silent > std::max(seconds, intervals * signs.view.interval_seconds());
}

Condition of_status(const RunStatus& status) {
  switch (status.state) {
    case RunStatus::State::kDone:
      return {State::kDone, ""};
    case RunStatus::State::kStopped:
      return {State::kStopped, str("exit ", status.code)};
    case RunStatus::State::kFailed:
      return {State::kFailed, str("exit ", status.code)};
    case RunStatus::State::kRunning:
      break;
  }
  return {State::kRunning, ""};
}

// A process that was killed has left its status as it was.
Condition without_records(const RunStatus& status, std::optional<bool> holds_lock) {
  const bool is_gone = status.state == RunStatus::State::kRunning && holds_lock == false;
  return is_gone ? Condition{State::kKilled, "no process holds its lock"} : of_status(status);
}

// By the last record of the start.
Condition of_end(const StartReport& start) {
  switch (start.end) {
    case StartEnd::kDone:
      return {State::kDone, ""};
    case StartEnd::kStopped:
      return {State::kStopped, start.cause + "; start it again to go on"};
    default:
      return {State::kFailed, start.cause};
  }
}

}  // namespace

const char* word_of(State state) {
  constexpr std::array<const char*, 9> kWords = {"no records yet", "starting", "running", "silent", "done",
                                                 "stopped",        "failed",   "hung",    "killed"};
  return kWords.at(static_cast<size_t>(state));
}

Condition condition_of(const Signs& signs) {
  const StartAccount* last = signs.view.last_start();
  if (last == nullptr) return signs.status ? without_records(*signs.status, signs.holds_lock) : Condition{};
  if (signs.view.has_ended()) {
    StartAccount closed = *last;
    closed.close(nullptr, true);
    return of_end(closed.report());
  }
  const StartReport& start = last->report();
  // A disk that was full has no last record.
  const bool is_of_start = signs.status && signs.status->incarnation == start.incarnation;
  if (is_of_start && signs.status->state != RunStatus::State::kRunning) return of_status(*signs.status);
  if (signs.hang && signs.hang->time >= start.exec) {
    return {State::kHung, signs.hang->headline.empty() ? signs.hang->name : signs.hang->headline};
  }
  const std::string silence = str("no record for ", human_duration(signs.silent));
  // A process of another container may be invisible from here; its records are not.
  if (signs.holds_lock == false && is_silent_for(signs, kGoneSeconds, kGoneIntervals)) {
    return {State::kKilled, "no process holds its lock, " + silence};
  }
  if (is_silent_for(signs, kSilentSeconds, kSilentIntervals)) {
    const std::string alive = signs.holds_lock == true ? ", its process lives"
                              : start.hosts.empty()    ? ""
                                                       : str("; it was on ", start.hosts);
    return {State::kSilent, silence + alive};
  }
  return {start.ready ? State::kRunning : State::kStarting, ""};
}

}  // namespace tokamak

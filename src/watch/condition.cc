#include "watch/condition.h"

#include "report/life_signs.h"

namespace tokamak {

namespace {

using State = Condition::State;

// States are the ends of a start, in their order, after those that have none.
constexpr int kOfEnds = static_cast<int>(State::kStarting);
static_assert(static_cast<int>(State::kKilled) == static_cast<int>(StartEnd::kKilled) + kOfEnds);

Condition of_standing(const Standing& standing) {
  return {static_cast<State>(static_cast<int>(standing.end) + kOfEnds), standing.why};
}

// A process that was killed has left its status as it was.
Condition without_records(const RunStatus& status, std::optional<bool> holds_lock) {
  const bool is_gone = status.state == RunStatus::State::kRunning && holds_lock == false;
  return is_gone ? Condition{State::kKilled, "no process holds its lock"} : of_standing(standing_of(status));
}

// By the last record of the start.
Condition of_end(const StartReport& start) {
  if (start.end == StartEnd::kStopped) return {State::kStopped, start.cause + "; start it again to go on"};
  return of_standing({start.end, start.cause});
}

}  // namespace

const char* word_of(State state) {
  if (state == State::kEmpty) return "no records yet";
  return kStartEndNames.at(static_cast<size_t>(static_cast<int>(state) - kOfEnds));
}

Condition condition_of(const Signs& signs) {
  const StartAccount* last = signs.view.last_start();
  if (last == nullptr) return signs.status ? without_records(*signs.status, signs.holds_lock) : Condition{};
  if (signs.view.has_ended()) {
    if (signs.view.is_done()) return {State::kDone, ""};
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
    return {State::kHung, signs.hang->headline.empty() ? signs.hang->name : signs.hang->headline};
  }
  return of_standing(standing);
}

}  // namespace tokamak

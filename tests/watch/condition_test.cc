#include "watch/condition.h"

#include <catch2/catch.hpp>

#include "watch/records.h"

using namespace tokamak;
using Catch::Contains;

namespace {

RunView view_of(const std::vector<MetricRecord>& records) {
  RunView view;
  for (const MetricRecord& record : records) view.see(record);
  return view;
}

const RunView kTraining = view_of({start(1), ready(2, 0), interval(12, 10, 3)});  // an interval takes 10 seconds

RunStatus status(RunStatus::State state, int code, const char* incarnation) {
  return {.state = state, .code = code, .incarnation = incarnation};
}

}  // namespace

TEST_CASE("a run without records is empty; status.json alone says how one without metrics.jsonl stands") {
  const RunView none;
  CHECK_FALSE(condition_of({.view = none}));
  CHECK(condition_of({.view = none, .status = status(RunStatus::State::kRunning, 0, "one")})->end ==
        StartEnd::kRunning);
  CHECK(condition_of({.view = none, .status = status(RunStatus::State::kDone, 0, "one")})->end == StartEnd::kDone);
  CHECK(
      condition_of({.view = none, .status = status(RunStatus::State::kRunning, 0, "one"), .holds_lock = false})->end ==
      StartEnd::kKilled);
}

TEST_CASE("a start without its first step is starting, then it runs") {
  CHECK(condition_of({.view = view_of({start(1)})})->end == StartEnd::kStarting);
  CHECK(condition_of({.view = kTraining, .holds_lock = true, .silent = 5})->end == StartEnd::kRunning);
  // The status of the start before is not this one's.
  CHECK(condition_of({.view = kTraining, .status = status(RunStatus::State::kStopped, 75, "zero")})->end ==
        StartEnd::kRunning);
}

TEST_CASE("what the run said of its end counts, whatever else is there") {
  const auto ended = [](const MetricRecord& stop, const MetricRecord& end) {
    return condition_of({.view = view_of({start(1), ready(2, 0), interval(12, 10, 3), stop, end}),
                         .hang = FoundHang{at(13), "hang-x.txt", "rank 3"},
                         .holds_lock = true});
  };
  const auto code = [](int64_t exit) { return std::vector<NamedValue>{count_value("exit_code", exit)}; };
  CHECK(ended(event(13, 10, "checkpoint"), event(14, 10, "end", "done", code(0)))->end == StartEnd::kDone);
  const auto stopped = ended(event(13, 10, "stop", "signal 15"), event(14, 10, "end", "stopped", code(75)));
  CHECK(stopped->end == StartEnd::kStopped);
  CHECK_THAT(stopped->why, Contains("signal 15") && Contains("start it again"));
  const auto failed = ended(event(13, 10, "checkpoint"), event(14, 10, "end", "disk full", code(4)));
  CHECK(failed->end == StartEnd::kFailed);
  CHECK_THAT(failed->why, Contains("exit 4: disk full"));
}

TEST_CASE("of a start whose last record a disk has refused, status.json says the end") {
  RunStatus failed = status(RunStatus::State::kFailed, 3, "one");
  CHECK(condition_of({.view = kTraining, .status = failed})->end == StartEnd::kFailed);
  failed.cause = "rank 1 is gone";
  CHECK(condition_of({.view = kTraining, .status = failed})->why == "exit 3: rank 1 is gone");
}

TEST_CASE("a file of the watchdog newer than the start means hung, an older one nothing") {
  const auto with_hang = [](double time) {
    return condition_of({.view = kTraining, .hang = FoundHang{at(time), "hang-x.txt", "rank 3 is in a collective"}});
  };
  CHECK(with_hang(20)->end == StartEnd::kHung);
  CHECK(with_hang(20)->why == "rank 3 is in a collective");
  CHECK(with_hang(-20)->end == StartEnd::kRunning);
}

TEST_CASE("killed is a run whose lock no process holds, at once") {
  const auto killed = condition_of({.view = kTraining, .holds_lock = false, .silent = 0.2});
  CHECK(killed->end == StartEnd::kKilled);
  CHECK(killed->why == "no process holds its lock, no record for 0:00");
  CHECK(condition_of({.view = kTraining, .holds_lock = true, .silent = 31})->end == StartEnd::kRunning);
}

TEST_CASE("a run of which nothing else is known is silent after minutes, or ten intervals") {
  const auto silent = condition_of({.view = kTraining, .silent = 121});
  CHECK(silent->end == StartEnd::kSilent);
  CHECK_THAT(silent->why, Contains("2:01") && Contains("n1,n2"));
  CHECK(condition_of({.view = kTraining, .silent = 119})->end == StartEnd::kRunning);
  CHECK_THAT(condition_of({.view = kTraining, .holds_lock = true, .silent = 121})->why, Contains("lives"));
  MetricRecord slow = interval(1002, 10, 3);
  slow.values.back() = {"time/interval", 1000};
  CHECK(condition_of({.view = view_of({start(1), ready(2, 0), slow}), .silent = 9999})->end == StartEnd::kRunning);
}

TEST_CASE("a run that goes on after its end is running again") {
  const RunView view = view_of(
      {start(1), ready(2, 0), event(3, 0, "end", "done", {count_value("exit_code", 0)}), start(10), ready(12, 0)});
  CHECK(condition_of({.view = view})->end == StartEnd::kRunning);
  CHECK(view.starts() == 2);
}

TEST_CASE("a run that is done stays done whatever a later start that is refused says; that is its last event") {
  const auto end = [](double time, const char* words, int64_t code) {
    return event(time, 0, "end", words, {count_value("exit_code", code)});
  };
  std::vector<MetricRecord> records = {start(1), ready(2, 0), interval(12, 10, 3), end(13, "done", 0)};
  for (const double time : {20.0, 30.0}) {
    records.push_back(start(time));
    CHECK(condition_of({.view = view_of(records), .silent = 0})->end == StartEnd::kStarting);
    records.push_back(end(time + 1, "rope_theta has changed", 2));
    const RunView view = view_of(records);
    const auto condition = condition_of({.view = view, .status = status(RunStatus::State::kDone, 0, "zero")});
    CHECK((condition->end == StartEnd::kDone && condition->why.empty()));
    CHECK(view.events().back().text == "end before the first step, exit 2: rope_theta has changed");
    CHECK(view.step() == 10);
  }
  // Of one that has stopped, and whose next start was refused, that one's word counts.
  records = {start(1),  ready(2, 0),    event(12, 9, "stop", "signal 15"), end(13, "stopped", 75),
             start(20), end(21, "x", 2)};
  CHECK(condition_of({.view = view_of(records)})->end == StartEnd::kFailed);
}

#include "report/run_report.h"

#include <catch2/catch.hpp>

#include "base/strings.h"
#include "report/run_account.h"
#include "support/run_records.h"

using namespace tokamak;

namespace {

using Records = std::vector<MetricRecord>;

const Records kTraining = {start(1), ready(2, 0), interval(12, 10, 3)};  // an interval takes 10 seconds

std::string judged(const Records& records, const LifeSigns& signs, const std::vector<FoundHang>& hangs = {}) {
  RunAccount account;
  for (const MetricRecord& record : records) account.see(record);
  RunReport report = account.report(hangs);
  StartReport& last = report.starts.back();
  judge(last, report.interval, signs);
  return str(last.end_name(), ": ", last.cause);
}

MetricRecord end(double time, const char* detail, int64_t code) {
  return event(time, 0, "end", detail, {count_value("exit_code", code)});
}

RunStatus status(RunStatus::State state, int code, const char* incarnation, const char* cause = "") {
  return {.state = state, .code = code, .incarnation = incarnation, .cause = cause};
}

}  // namespace

TEST_CASE("a start without its first step is starting, then it runs; the status of another start does not count") {
  CHECK(judged({start(1)}, {}) == "starting: ");
  CHECK(judged(kTraining, {.holds_lock = true, .silent = 5}) == "running: ");
  CHECK(judged(kTraining, {.status = status(RunStatus::State::kStopped, 75, "zero")}) == "running: ");
}

TEST_CASE("a recorded end counts, whatever else is there; without one status.json counts, then a hang") {
  const std::vector<FoundHang> hang = {{at(13), "hang-x.txt", "rank 3"}};
  Records stopped = kTraining, failed = kTraining;
  stopped.insert(stopped.end(), {event(13, 10, "stop", "signal 15"), end(14, "stopped", 75)});
  failed.push_back(end(14, "disk full", 4));
  CHECK(judged(stopped, {.holds_lock = true}, hang) == "stopped: signal 15");
  CHECK(judged(failed, {.holds_lock = true}, hang) == "failed: exit 4: disk full");
  CHECK(judged(kTraining, {.holds_lock = true}, hang) == "hung: rank 3");
  CHECK(judged(kTraining, {.holds_lock = true}, {{at(-20), "hang-x.txt", "rank 3"}}) == "running: ");
  CHECK(judged(kTraining, {.status = status(RunStatus::State::kFailed, 3, "one"), .holds_lock = false}) ==
        "failed: exit 3");
  CHECK(judged(kTraining, {.status = status(RunStatus::State::kFailed, 3, "one", "rank 1 is gone")}) ==
        "failed: exit 3: rank 1 is gone");
  CHECK(judged(kTraining, {.status = status(RunStatus::State::kDone, 0, "one")}) == "done: ");
}

TEST_CASE("a start whose lock is free was killed; without a lock it is silent after minutes, or ten intervals") {
  CHECK(judged(kTraining, {.holds_lock = false, .silent = 0.2}) ==
        "killed: no process holds its lock, no record for 0:00");
  CHECK(judged(kTraining, {.holds_lock = false}) == "killed: no process holds its lock");
  CHECK(judged(kTraining, {.silent = 119}) == "running: ");
  CHECK(judged(kTraining, {.silent = 121}) == "silent: no record for 2:01; it was on n1,n2");
  CHECK(judged(kTraining, {.holds_lock = true, .silent = 121}) == "silent: no record for 2:01, its process lives");
  Records slow = kTraining;
  slow.push_back(interval(1002, 20, 10));
  slow.back().values.back() = {"time/interval", 1000};
  CHECK(judged(slow, {.silent = 9999}) == "running: ");
}

TEST_CASE("a run that is done stays done when a later start is refused; one that had stopped does not") {
  Records records = {start(1), ready(2, 0), interval(12, 10, 3), end(13, "done", 0)};
  for (const double time : {20.0, 30.0}) {
    records.push_back(start(time));
    CHECK(judged(records, {}) == "starting: ");
    records.push_back(end(time + 1, "rope_theta has changed", 2));
    CHECK(judged(records, {.status = status(RunStatus::State::kDone, 0, "zero")}) == "done: ");
  }
  records = {start(1),  ready(2, 0),    event(12, 9, "stop", "signal 15"), end(13, "stopped", 75),
             start(20), end(21, "x", 2)};
  CHECK(judged(records, {}) == "failed: exit 2: x");
}

#include "report/run_report.h"

#include <algorithm>

#include "base/clock.h"
#include "base/file.h"
#include "base/run_files.h"
#include "base/strings.h"
#include "monitor/jsonl.h"
#include "report/run_account.h"

namespace tokamak {

namespace {

double per_second(double amount, int64_t milliseconds) {
  return milliseconds > 0 ? 1e3 * amount / static_cast<double>(milliseconds) : 0;
}

constexpr double kSilentSeconds = 120, kSilentIntervals = 10;  // silent: longer than both

// A full disk may have refused the last record; status.json is then the only trace of the end.
void take_status(StartReport& start, const RunStatus& status) {
  start.cause = str("exit ", status.code, status.cause.empty() ? "" : ": ", status.cause);
  if (status.state == RunStatus::State::kStopped) start.end = StartEnd::kStopped;
  if (status.state == RunStatus::State::kFailed) start.end = StartEnd::kFailed;
  if (status.state == RunStatus::State::kDone) start.end = StartEnd::kDone, start.cause = "";
}

}  // namespace

double RunReport::ettr() const {
  return per_second(1e-3 * static_cast<double>(time[Spent::kProductive]), wall_clock());
}
double RunReport::goodput() const { return per_second(static_cast<double>(tokens), wall_clock()); }
double RunReport::productive_rate() const { return per_second(static_cast<double>(tokens), time[Spent::kProductive]); }

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

void expect_run(const std::string& directory) {
  constexpr const char* kHint = "give the run.output_dir of a run";
  if (!is_directory(directory)) fail(Kind::kConfig, str("no run directory ", directory), kHint);
  for (const char* part : {run_files::kMetrics, run_files::kStatus, run_files::kCheckpoints}) {
    if (exists(str(directory, "/", part))) return;
  }
  fail(Kind::kConfig, str(directory, " is not a run: it has no metrics.jsonl, no status.json and no checkpoints/"),
       kHint);
}

RunReport read_report(const std::string& directory, std::optional<bool> holds_lock,
                      const std::function<void(const MetricRecord&)>& see) {
  expect_run(directory);
  const std::string path = run_files::at(directory, run_files::kMetrics);
  const std::vector<FoundHang> hangs = find_hang_files(directory);
  RunAccount account;
  const auto take = [&](const MetricRecord& record) {
    account.see(record, hangs);
    if (see) see(record);
  };
  read_records(path, take, see ? ReadTensors::kYes : ReadTensors::kNo);
  if (account.empty()) {
    fail(Kind::kData, path + " has no records", "give the run.output_dir of a run that has begun");
  }
  RunReport report = account.report(hangs);
  report.directory = directory;
  report.suspects = read_suspects(directory);
  StartReport& last = report.starts.back();
  const double silent = std::max(1e-3, 1e-3 * static_cast<double>(unix_milliseconds() - last.last_sign));
  judge(last, report.interval, {.status = read_run_status(directory), .holds_lock = holds_lock, .silent = silent});
  return report;
}

}  // namespace tokamak

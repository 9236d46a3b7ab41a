#include "watch/run_watch.h"

#include <algorithm>

#include "base/clock.h"
#include "base/file.h"
#include "base/run_files.h"
#include "base/strings.h"
#include "watch/screen.h"

namespace tokamak {

namespace {

std::vector<FoundHang> hangs_in(const std::string& directory) {
  try {
    return find_hang_files(directory);
  } catch (const Error&) {  // the directory is gone for now; the notice says so
    return {};
  }
}

// Without records only status.json and the lock show the state.
std::optional<RunReport> report_without_records(const std::optional<RunStatus>& status) {
  if (!status) return std::nullopt;
  return RunReport{.starts = {{.incarnation = status->incarnation}}};
}

std::string footer_of(const Look& look) {
  const std::string steps = look.zoom == 0 ? "all" : str("the last 1/", int64_t{1} << look.zoom);
  return str("q quit   l axes: ", look.is_log ? "log" : "linear", "   + - steps: ", steps);
}

}  // namespace

RunWatch::RunWatch(std::string directory, HoldsLock holds_lock)
    : shown_{.directory = std::move(directory)},
      holds_lock_(std::move(holds_lock)),
      tail_(run_files::at(shown_.directory, run_files::kMetrics)) {
  expect_run(shown_.directory);
}

bool RunWatch::refresh() {
  // Reads the lock before the records. If the lock is free, the run has already written its last record.
  const std::optional<bool> held = holds_lock_();
  auto& [directory, view, report, notice, hangs] = shown_;
  const RecordTail::News news = tail_.poll();
  if (news.is_new_file) view = RunView();
  for (const MetricRecord& record : news.records) view.see(record);
  if (has_caught_up_ && !news.records.empty()) heard_ = now_seconds();
  has_caught_up_ = has_caught_up_ || !news.has_more;
  notice = news.trouble;
  if (news.has_more) notice = str("reading, ", fixed(100 * news.read_share, 0), " %");
  if (!is_directory(directory)) notice = "the directory is gone";
  hangs = hangs_in(directory);
  const std::optional<RunStatus> status = read_run_status(directory);
  report = view.account.empty() ? report_without_records(status) : view.account.report(hangs);
  if (report) {
    judge(report->starts.back(), report->interval, {.status = status, .holds_lock = held, .silent = silent_seconds()});
  }
  return news.has_more;
}

// The clocks of two machines may differ: once a record has come, only this machine's clock is used.
double RunWatch::silent_seconds() const {
  if (shown_.view.account.empty()) return 0;
  if (heard_) return now_seconds() - *heard_;
  return std::max(1e-3, 1e-3 * static_cast<double>(unix_milliseconds() - shown_.report->starts.back().last_sign));
}

void RunWatch::follow_in_terminal(double interval) {
  Screen screen;
  Look look{.is_ascii = wants_ascii()};
  for (;;) {
    const bool has_more = refresh();
    const Stopwatch since;
    do {
      look.rows = screen.rows();
      look.columns = screen.columns();
      look.footer = footer_of(look);
      screen.show(frame(look));
      const int key = screen.wait(has_more ? 0 : interval - since.seconds());
      if (key == 'q' || key == 'Q') return;
      if (key == 'l') look.is_log = !look.is_log;
      if (key == '+' || key == '=') look.zoom = std::min(look.zoom + 1, kMostZoom);
      if (key == '-') look.zoom = std::max(look.zoom - 1, 0);
    } while (!has_more && since.seconds() < interval);
  }
}

}  // namespace tokamak

#include "watch/run_watch.h"

#include <algorithm>

#include "base/clock.h"
#include "base/file.h"
#include "base/run_files.h"
#include "base/strings.h"
#include "report/life_signs.h"

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
  RunReport report;
  report.starts.push_back({.incarnation = status->incarnation});
  return report;
}

}  // namespace

RunWatch::RunWatch(std::string directory, HoldsLock holds_lock)
    : directory_(std::move(directory)),
      holds_lock_(std::move(holds_lock)),
      tail_(run_files::at(directory_, run_files::kMetrics)) {
  expect_run(directory_);
}

bool RunWatch::refresh() {
  // The lock before the records: a run that ends in between has written its last record by then.
  const std::optional<bool> held = holds_lock_();
  const RecordTail::News news = tail_.poll();
  if (news.is_new_file) view_ = RunView();
  for (const MetricRecord& record : news.records) view_.see(record);
  if (has_caught_up_ && !news.records.empty()) heard_ = now_seconds();
  has_caught_up_ = has_caught_up_ || !news.has_more;
  notice_ = news.trouble;
  if (news.has_more) notice_ = str("reading, ", fixed(100 * news.read_share, 0), " %");
  if (!is_directory(directory_)) notice_ = "the directory is gone";
  hangs_ = hangs_in(directory_);
  const std::optional<RunStatus> status = read_run_status(directory_);
  report_ = view_.account().empty() ? report_without_records(status) : view_.account().report(hangs_);
  if (report_) {
    judge(report_->starts.back(), report_->interval,
          {.status = status, .holds_lock = held, .silent = silent_seconds()});
  }
  return news.has_more;
}

// The clocks of two machines may differ: once a record has come, only this machine's clock counts.
double RunWatch::silent_seconds() const {
  if (view_.account().empty()) return 0;
  if (heard_) return now_seconds() - *heard_;
  return std::max(1e-3, 1e-3 * static_cast<double>(unix_milliseconds() - report_->starts.back().last_sign));
}

Frame RunWatch::frame(const Look& look) const {
  return draw_run({.directory = directory_, .view = view_, .report = report_, .notice = notice_, .hangs = hangs_},
                  look);
}

}  // namespace tokamak

#include "watch/run_watch.h"

#include <algorithm>

#include "base/clock.h"
#include "base/file.h"
#include "base/strings.h"

namespace tokamak {

namespace {

std::vector<FoundHang> hangs_in(const std::string& directory) {
  try {
    return find_hang_files(directory);
  } catch (const Error&) {  // the directory is gone for now, which the notice tells
    return {};
  }
}

}  // namespace

RunWatch::RunWatch(std::string directory, HoldsLock holds_lock)
    : directory_(std::move(directory)), holds_lock_(std::move(holds_lock)), tail_(directory_ + "/metrics.jsonl") {
  expect_run(directory_);
}

bool RunWatch::refresh() {
  // The lock before the records: a run that has ended in between has left its last one.
  const std::optional<bool> held = holds_lock_();
  const RecordTail::News news = tail_.poll();
  if (news.is_anew) view_ = RunView();
  for (const MetricRecord& record : news.records) view_.see(record);
  if (has_caught_up_ && !news.records.empty()) heard_ = now_seconds();
  has_caught_up_ = has_caught_up_ || !news.has_more;
  notice_ = !news.trouble.empty() ? news.trouble : "";
  if (news.has_more) notice_ = str("reading, ", fixed(100 * news.read_share, 0), " %");
  if (!is_directory(directory_)) notice_ = "the directory is gone";
  hangs_ = hangs_in(directory_);
  condition_ = condition_of({.view = view_,
                             .status = read_run_status(directory_),
                             .hang = hangs_.empty() ? std::nullopt : std::optional(hangs_.back()),
                             .holds_lock = held,
                             .silent = silent_seconds()});
  return news.has_more;
}

// Clocks of machines differ: once a record has come, this one's alone counts.
double RunWatch::silent_seconds() const {
  if (heard_) return now_seconds() - *heard_;
  if (view_.last_time() == 0) return 0;
  return std::max(0.0, 1e-3 * static_cast<double>(unix_milliseconds() - view_.last_time()));
}

Frame RunWatch::frame(const Look& look) const {
  return draw_run({.directory = directory_, .view = view_, .condition = condition_, .notice = notice_, .hangs = hangs_},
                  look);
}

}  // namespace tokamak

#include "watch/run_watch.h"

#include <algorithm>

#include "base/clock.h"
#include "base/file.h"
#include "base/printable.h"
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

// The last lines of the run's own log, printable. Empty where there is none.
std::vector<std::string> last_log_lines(const std::string& directory) {
  constexpr int64_t kBytes = 8192;
  const std::string path = directory + "/train.log";
  if (!exists(path)) return {};
  try {
    const InputFile file(path, Kind::kData);
    const int64_t length = std::min(kBytes, file.size());
    std::string text(static_cast<size_t>(length), '\0');
    file.read_at(file.size() - length, std::as_writable_bytes(std::span(text.data(), text.size())));
    std::vector<std::string> lines = split(trim(text), '\n');
    if (length < file.size()) lines.erase(lines.begin());  // its begin is further up
    for (std::string& line : lines) line = printable(line, 400);
    return lines;
  } catch (const Error&) {
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
  log_ = last_log_lines(directory_);
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
  return draw_run({.directory = directory_,
                   .view = view_,
                   .condition = condition_,
                   .notice = notice_,
                   .hangs = hangs_,
                   .log = log_},
                  look);
}

}  // namespace tokamak

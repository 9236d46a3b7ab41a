#include "report/run_report.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/file.h"
#include "monitor/jsonl.h"
#include "report/life_signs.h"
#include "report/run_account.h"

namespace tokamak {

namespace {

double per_second(double amount, int64_t milliseconds) {
  return milliseconds > 0 ? 1e3 * amount / static_cast<double>(milliseconds) : 0;
}

}  // namespace

double RunReport::ettr() const {
  return per_second(1e-3 * static_cast<double>(time[Spent::kProductive]), wall_clock());
}
double RunReport::goodput() const { return per_second(static_cast<double>(tokens), wall_clock()); }
double RunReport::productive_rate() const { return per_second(static_cast<double>(tokens), time[Spent::kProductive]); }

RunReport make_report(const std::string& directory, const std::vector<MetricRecord>& records,
                      const std::vector<FoundHang>& hangs) {
  if (records.empty()) {
    fail(Kind::kData, str(directory, "/metrics.jsonl has no records"),
         "give the run.output_dir of a run; it writes them there unless metrics.jsonl is false");
  }
  RunAccount account;
  for (const MetricRecord& record : records) account.see(record, hangs);
  RunReport report = account.report(hangs);
  report.directory = directory;
  return report;
}

void expect_run(const std::string& directory) {
  constexpr const char* kHint = "give the run.output_dir of a run";
  if (!is_directory(directory)) fail(Kind::kConfig, str("no run directory ", directory), kHint);
  for (const char* part : {"metrics.jsonl", "status.json", "checkpoints"}) {
    if (exists(str(directory, "/", part))) return;
  }
  fail(Kind::kConfig, str(directory, " is no run: it has no metrics.jsonl, no status.json and no checkpoints/"), kHint);
}

std::vector<MetricRecord> read_run_records(const std::string& directory,
                                           const std::function<void(const MetricRecord&)>& see) {
  expect_run(directory);
  std::vector<MetricRecord> records;
  const auto keep = [&](const MetricRecord& record) {
    if (see) see(record);
    records.push_back(record);
    records.back().tensors = {};
  };
  read_records(directory + "/metrics.jsonl", keep, see ? ReadTensors::kYes : ReadTensors::kNo);
  // A run that began with a version that wrote them into metrics.jsonl has the earlier ones there.
  if (see) read_records(directory + "/tensors.jsonl", see, ReadTensors::kYes);
  return records;
}

RunReport report_of(const std::string& directory, const std::vector<MetricRecord>& records,
                    std::optional<bool> holds_lock) {
  RunReport report = make_report(directory, records, find_hang_files(directory));
  StartReport& last = report.starts.back();
  if (last.end == StartEnd::kRunning || last.end == StartEnd::kStarting) {
    LifeSigns signs{.status = read_run_status(directory), .holds_lock = holds_lock};
    signs.silent = std::max(0.0, 1e-3 * static_cast<double>(unix_milliseconds() - last.last_sign));
    for (const MetricRecord& record : records) signs.interval = record.value_or("time/interval", signs.interval);
    const Standing now = standing_of(last, signs);
    last.end = now.end;
    if (!now.why.empty()) last.cause = now.why;
  }
  report.suspects = read_suspects(directory);
  return report;
}

RunReport read_report(const std::string& directory, std::optional<bool> holds_lock) {
  return report_of(directory, read_run_records(directory), holds_lock);
}

}  // namespace tokamak

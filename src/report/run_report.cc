#include "report/run_report.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/file.h"
#include "monitor/jsonl.h"
#include "report/life_signs.h"
#include "report/start_account.h"

namespace tokamak {

namespace {

constexpr double kSlow = 1.5;  // times the median pace

double per_second(double amount, int64_t milliseconds) {
  return milliseconds > 0 ? 1e3 * amount / static_cast<double>(milliseconds) : 0;
}

int64_t share_of(int64_t milliseconds, int64_t part, int64_t whole) {
  return std::llround(static_cast<double>(milliseconds) * static_cast<double>(part) / static_cast<double>(whole));
}

double pace(const TrainedSteps& steps) {
  return static_cast<double>(steps.milliseconds) / static_cast<double>(steps.to - steps.from);
}

double median_pace(const std::vector<TrainedSteps>& trained) {
  std::vector<double> paces;
  for (const TrainedSteps& steps : trained) {
    if (steps.to > steps.from) paces.push_back(pace(steps));
  }
  if (paces.empty()) return 0;
  const auto middle = paces.begin() + static_cast<int64_t>((paces.size() - 1) / 2);
  std::nth_element(paces.begin(), middle, paces.end());
  return *middle;
}

// The steps of one start, those up to `kept` being of the run's course. Returns up to where earlier starts' are.
int64_t count_steps(StartReport& start, const std::vector<TrainedSteps>& trained, int64_t kept) {
  const double median = median_pace(trained);
  for (auto steps = trained.rbegin(); steps != trained.rend(); ++steps) {
    const int64_t count = steps->to - steps->from;
    if (count > 0) {
      const int64_t counted = std::clamp(kept - steps->from, int64_t{0}, count);
      const int64_t productive = share_of(steps->milliseconds, counted, count);
      start.time[Spent::kProductive] += productive;
      start.time[Spent::kLost] += steps->milliseconds - productive;
      start.lost_steps += count - counted;
      if (pace(*steps) > kSlow * median)
        start.slow += std::llround((pace(*steps) - median) * static_cast<double>(counted));
    }
    kept = std::min(kept, steps->from);
  }
  return kept;
}

// The hang that ended a start whose successor began at `next`.
const FoundHang* hang_of(const StartReport& start, std::optional<int64_t> next, const std::vector<FoundHang>& hangs) {
  const FoundHang* found = nullptr;
  for (const FoundHang& hang : hangs) {
    if (hang.time >= start.exec && (!next || hang.time < *next)) found = &hang;
  }
  return found;
}

void leave_out_idle(std::vector<StartAccount>& accounts) {
  if (accounts.size() < 2 || !accounts.back().is_idle()) return;
  if (accounts[accounts.size() - 2].report().end == StartEnd::kDone) accounts.pop_back();
}

std::vector<StartAccount> accounts_of(const std::vector<MetricRecord>& records, const std::vector<FoundHang>& hangs) {
  std::vector<StartAccount> accounts;
  const auto close_last = [&](const MetricRecord* next) {
    StartAccount& last = accounts.back();
    std::optional<int64_t> begin;
    if (next != nullptr) begin = StartAccount(*next, &last.report()).report().exec;
    last.close(hang_of(last.report(), begin, hangs), next == nullptr);
  };
  for (const MetricRecord& record : records) {
    if (accounts.empty()) {
      accounts.emplace_back(record, nullptr);
    } else if (accounts.back().ended_before(record)) {
      close_last(&record);
      leave_out_idle(accounts);
      accounts.push_back(StartAccount(record, &accounts.back().report()));
    }
    accounts.back().see(record);
  }
  close_last(nullptr);
  leave_out_idle(accounts);
  return accounts;
}

void time_restarts(std::vector<StartReport>& starts) {
  std::optional<int64_t> trained_until;
  for (StartReport& start : starts) {
    if (!start.ready) continue;
    if (trained_until) start.restart = *start.ready - *trained_until;
    trained_until = start.last_sign;
  }
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
  const std::vector<StartAccount> accounts = accounts_of(records, hangs);
  RunReport report{.directory = directory};
  for (const StartAccount& account : accounts) report.starts.push_back(account.report());
  int64_t kept = INT64_MAX;
  for (size_t i = accounts.size(); i-- > 0;) kept = count_steps(report.starts[i], accounts[i].trained(), kept);
  time_restarts(report.starts);
  std::optional<int64_t> first_step;
  for (const StartReport& start : report.starts) {
    report.time += start.time;
    report.slow += start.slow;
    report.lost_steps += start.lost_steps;
    report.saves.committed += start.saves.committed;
    report.saves.refused += start.saves.refused;
    report.saves.bytes += start.saves.bytes;
    report.saves.seconds += start.saves.seconds;
    if (!start.ready) continue;
    first_step = std::min(first_step.value_or(start.first_step), start.first_step);
    report.step = start.last_step;
  }
  report.first_step = first_step.value_or(0);
  double tokens_per_step = 0;
  for (const MetricRecord& record : records) {
    report.total_steps = std::llround(record.value_or("total_steps", static_cast<double>(report.total_steps)));
    if (record.has("tokens") && record.step > 0)
      tokens_per_step = record.at("tokens") / static_cast<double>(record.step);
  }
  report.tokens = std::llround(tokens_per_step * static_cast<double>(report.step - report.first_step));
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

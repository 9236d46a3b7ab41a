#include "report/run_account.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace tokamak {

namespace {

constexpr double kSlow = 1.5;  // times the median pace

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

// Splits the time of one start. Steps after `kept` are lost. Returns `kept` for the start before it.
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

// The hang that ended a start before the next one began.
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

void time_restarts(std::vector<StartReport>& starts) {
  std::optional<int64_t> trained_until;
  for (StartReport& start : starts) {
    if (!start.ready) continue;
    if (trained_until) start.restart = *start.ready - *trained_until;
    trained_until = start.last_sign;
  }
}

}  // namespace

bool RunAccount::see(const MetricRecord& record, const std::vector<FoundHang>& hangs) {
  const bool is_first = starts_.empty(), is_next = !is_first && starts_.back().ended_before(record);
  if (is_first) starts_.emplace_back(record, nullptr);
  if (is_next) {
    StartAccount& last = starts_.back();
    const int64_t next = StartAccount(record, &last.report()).report().exec;
    last.close(hang_of(last.report(), next, hangs), false);
    leave_out_idle(starts_);
    starts_.push_back(StartAccount(record, &starts_.back().report()));
  }
  starts_.back().see(record);
  interval_ = record.value_or("time/interval", interval_);
  total_steps_ = std::llround(record.value_or("total_steps", static_cast<double>(total_steps_)));
  total_tokens_ = std::llround(record.value_or("total_tokens", static_cast<double>(total_tokens_)));
  if (record.is("stage")) see_stage(record);
  if (record.has("tokens")) {
    while (!tokens_.empty() && tokens_.back().step >= record.step) tokens_.pop_back();
    tokens_.push_back({record.step, record.at("tokens")});
  }
  return is_first || is_next;
}

// A later start may begin a stage again, or have other stages from there on.
void RunAccount::see_stage(const MetricRecord& record) {
  const auto count = [&](const char* name) { return std::llround(record.value_or(name, 0)); };
  const StageReport stage{.name = record.event->detail,
                          .first_step = count("stage/first_step"),
                          .last_step = count("stage/last_step"),
                          .sequence_length = count("stage/sequence_length"),
                          .tokens_per_step = count("stage/tokens_per_step")};
  while (!stages_.empty() && stages_.back().first_step >= stage.first_step) stages_.pop_back();
  stages_.push_back(stage);
}

// Interpolates linearly between the records around `step`, or extends the last two. Step 0 has 0 tokens.
double RunAccount::tokens_after(int64_t step) const {
  TokensAt before, after;
  for (const TokensAt& one : tokens_) {
    before = std::exchange(after, one);
    if (one.step >= step) break;
  }
  if (after.step == before.step) return after.tokens;
  const double share = double(step - before.step) / double(after.step - before.step);
  return before.tokens + share * (after.tokens - before.tokens);
}

RunReport RunAccount::report(const std::vector<FoundHang>& hangs) const {
  TOKAMAK_CHECK(!empty(), "the account of a run without records");
  std::vector<StartAccount> starts = starts_;
  starts.back().close(hang_of(starts.back().report(), std::nullopt, hangs), true);
  leave_out_idle(starts);
  RunReport report{.total_steps = total_steps_, .total_tokens = total_tokens_, .interval = interval_};
  report.stages = stages_;
  for (const StartAccount& start : starts) report.starts.push_back(start.report());
  int64_t kept = INT64_MAX;
  for (size_t i = starts.size(); i-- > 0;) kept = count_steps(report.starts[i], starts[i].trained(), kept);
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
  report.tokens = std::llround(tokens_after(report.step) - tokens_after(report.first_step));
  return report;
}

}  // namespace tokamak

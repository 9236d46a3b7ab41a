#include "report/start_account.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "base/strings.h"

namespace tokamak {

namespace {

constexpr std::string_view kPhase = "startup/", kPhaseSum = "startup/seconds";

}  // namespace

StartAccount::StartAccount(const MetricRecord& first, const StartReport* before) {
  // Clocks of hosts differ and are set; no start begins before the previous one has ended.
  const int64_t earliest = before != nullptr ? before->last_sign : 0;
  const std::string exec = first.event ? first.event->text("exec") : "";
  const int64_t end = std::max(first.time, earliest);
  report_.exec = std::clamp(parse_utc(exec).value_or(end), earliest, end);
  report_.last_sign = report_.exec;
  if (before != nullptr && before->end != StartEnd::kDone) {
    report_.time[Spent::kDown] = report_.exec - before->last_sign;
  }
}

bool StartAccount::ended_before(const MetricRecord& record) const {
  // A full disk may have refused the start's first record; its second one shows it.
  return record.is("start") || ((record.is("resume") || record.is("ready")) && report_.ready);
}

void StartAccount::advance(int64_t time) {
  const int64_t passed = std::max(int64_t{0}, time - report_.last_sign);
  report_.last_sign += passed;
  if (report_.ready) {
    unclaimed_ += passed;
  } else {
    report_.time[Spent::kStartup] += passed;
  }
}

void StartAccount::begin_training(int64_t step) {
  report_.ready = report_.last_sign;
  report_.first_step = report_.last_step = reached_ = step;
  trained_.push_back({step, step, 0});  // notes that the run went back to `step`, even if it trains no step after it
}

int64_t StartAccount::claim(double seconds) {
  const int64_t claimed = std::clamp<int64_t>(std::llround(1e3 * seconds), 0, unclaimed_);
  unclaimed_ -= claimed;
  return claimed;
}

void StartAccount::see(const MetricRecord& record) {
  if (!record.event && !report_.ready) begin_training(std::min(reached_, record.step));
  advance(record.time);
  if (record.event) {
    see_event(record);
    return;
  }
  if (record.has("time/interval")) {
    const int64_t from = std::min(report_.last_step, record.step - 1);
    trained_.push_back({from, record.step, claim(record.at("time/interval"))});
    report_.last_step = record.step;
  }
  report_.time[Spent::kValidation] += claim(record.value_or("time/validation", 0));
  report_.time[Spent::kEvals] += claim(record.value_or("time/evals", 0));
  report_.time[Spent::kSamples] += claim(record.value_or("time/samples", 0));
  reached_ = std::max(reached_, record.step);
}

void StartAccount::see_event(const MetricRecord& record) {
  reached_ = std::max(reached_, record.step);
  if (record.is("start")) {
    report_.ranks = std::llround(record.value_or("ranks", 0));
    report_.hosts = record.event->text("hosts");
    report_.incarnation = record.event->text("incarnation");
  } else if (record.is("resume")) {
    report_.changed = record.event->text("changed");
  } else if (record.is("ready")) {
    begin_training(record.step);
    for (const NamedValue& one : record.values) {
      if (starts_with(one.name, kPhase) && one.name != kPhaseSum) {
        report_.startup.push_back({one.name.substr(kPhase.size()), one.value});
      }
    }
  } else if (record.is("rollback")) {
    trained_.push_back({record.step, record.step, 0});
    report_.last_step = reached_ = record.step;
  } else if (record.is("checkpoint")) {
    ++report_.saves.committed;
    report_.saves.bytes += std::llround(record.value_or("checkpoint/bytes", 0));
    report_.saves.seconds += record.value_or("checkpoint/seconds", 0);
  } else if (record.is("checkpoint refused")) {
    ++report_.saves.refused;
  } else if (record.is("stop")) {
    stop_ = record.event->detail;
  } else if (record.is("end")) {
    exit_code_ = std::llround(record.value_or("exit_code", 0));
    end_detail_ = record.event->detail;
  }
  report_.time[Spent::kSaves] += claim(record.value_or("checkpoint/stall", 0));
}

bool StartAccount::is_idle() const {
  return report_.last_step <= report_.first_step &&
         (report_.end == StartEnd::kDone || report_.end == StartEnd::kFailed);
}

void StartAccount::close(const FoundHang* hang, bool is_last) {
  if (hang != nullptr && !exit_code_) {
    advance(hang->time);
    report_.time[Spent::kHang] += std::exchange(unclaimed_, 0);
    report_.end = StartEnd::kHung;
    report_.cause = hang->headline.empty() ? hang->name : hang->headline;
  } else {
    close_by_records(is_last);
  }
  if (reached_ > report_.last_step) {
    trained_.push_back({report_.last_step, reached_, std::exchange(unclaimed_, 0)});
    report_.last_step = reached_;
  }
  report_.time[Spent::kOther] += std::exchange(unclaimed_, 0);
}

void StartAccount::close_by_records(bool is_last) {
  if (exit_code_ == 0) {
    report_.end = StartEnd::kDone;
  } else if (exit_code_ && stop_ && end_detail_ == "stopped") {
    report_.end = StartEnd::kStopped;
    report_.cause = *stop_;
  } else if (exit_code_) {
    report_.end = StartEnd::kFailed;
    report_.cause = str("exit ", *exit_code_, ": ", end_detail_);
  } else {
    report_.end = !is_last ? StartEnd::kKilled : report_.ready ? StartEnd::kRunning : StartEnd::kStarting;
    report_.cause = is_last ? "" : "no end was recorded";
    if (stop_) report_.cause = str("while it stopped for ", *stop_);
    if (!is_last && !report_.ready) report_.cause += ", before its first step";
  }
}

}  // namespace tokamak

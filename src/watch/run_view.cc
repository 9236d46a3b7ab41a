#include "watch/run_view.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "monitor/history.h"

namespace tokamak {

namespace {

constexpr size_t kMostEvents = 200;

void append(std::deque<EventLine>& lines, EventLine line) {
  lines.push_back(std::move(line));
  if (lines.size() > kMostEvents) lines.pop_front();
}

}  // namespace

void RunView::see(const MetricRecord& record) {
  if (!start_ || start_->ended_before(record)) {
    StartAccount next(record, start_ ? &start_->report() : nullptr);
    start_ = std::move(next);
    ++starts_;
    has_ended_ = false;
    was_done_ = std::exchange(is_done_, false);
    trained_seconds_ = 0;
    lost_steps_ = 0;
    stragglers_.clear();
  }
  start_->see(record);
  account_.see(record);
  curves_.see(record);
  last_time_ = std::max(last_time_, record.time);
  if (record.is("resume") || record.is("ready")) go_back_to(record.step);
  if (sets_course(record)) step_ = record.step;
  if (record.event) {
    see_event(record);
    return;
  }
  if (!record.samples.empty()) samples_ = record;
  if (!first_step_) first_step_ = start_->report().first_step;
  last_interval_ = record.value_or("time/interval", last_interval_);
  trained_seconds_ += record.value_or("time/interval", 0);
  if (record.has("tokens") && record.step > 0) {
    tokens_per_step_ = record.at("tokens") / static_cast<double>(record.step);
  }
}

void RunView::go_back_to(int64_t step) {
  lost_steps_ += std::max<int64_t>(0, step_ - step);
  while (!restarts_.empty() && restarts_.back() >= step) restarts_.pop_back();
  if (starts_ > 1) restarts_.push_back(step);
  saved_step_ = std::min(saved_step_, step);
  if (samples_ && samples_->step > step) samples_.reset();
}

void RunView::see_event(const MetricRecord& record) {
  const EventLine line = line_of(record, start_->report(), starts_, lost_steps_);
  append(events_, line);
  if (record.is("straggler")) append(stragglers_, line);
  if (record.is("end")) {
    has_ended_ = true;
    StartAccount closed = *start_;
    closed.close(nullptr, true);
    is_done_ = closed.report().end == StartEnd::kDone || (was_done_ && closed.is_idle());
  }
  // A run that stops, or fails, before its next line of values has trained all the same.
  if (record.is("checkpoint") || record.is("stop") || record.is("end")) step_ = std::max(step_, record.step);
  if (record.is("checkpoint")) saved_step_ = std::max(saved_step_, record.step);
  if (record.is("ready")) {
    if (!first_step_) first_step_ = record.step;
    total_steps_ = std::llround(record.value_or("total_steps", static_cast<double>(total_steps_)));
    tokens_per_step_ = record.value_or("tokens_per_step", tokens_per_step_);
    memory_planned_ = record.value_or("memory/planned", 0);
    device_ = record.event->text("device");
  }
}

double RunView::pace() const {
  if (!start_) return 0;
  const int64_t steps = start_->report().last_step - start_->report().first_step;
  return steps > 0 ? trained_seconds_ / static_cast<double>(steps) : 0;
}

}  // namespace tokamak

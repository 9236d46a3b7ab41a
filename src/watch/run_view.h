// What is known of a run from its records so far: the curves of its course, the account of its time, its newest events and
// samples. Takes each record once; what it keeps of old ones are the points of curves and the seconds of intervals.
#pragma once

#include <deque>
#include <optional>

#include "report/run_account.h"
#include "watch/curves.h"
#include "watch/event_text.h"

namespace tokamak {

class RunView {
 public:
  void see(const MetricRecord& record);  // in the order of the file

  const Curves& curves() const { return curves_; }
  int64_t starts() const { return starts_; }
  const StartAccount* last_start() const { return start_ ? &*start_ : nullptr; }
  bool has_ended() const { return has_ended_; }  // the last start, by its own words
  bool is_done() const { return is_done_; }      // all that there was to train, also where a later start was refused

  int64_t first_step() const { return first_step_.value_or(0); }  // done before the first start
  int64_t step() const { return step_; }                          // that the run has reached
  int64_t total_steps() const { return total_steps_; }            // 0: not known
  double tokens_per_step() const { return tokens_per_step_; }
  int64_t last_time() const { return last_time_; }            // of its newest record; 0: there is none
  double interval_seconds() const { return last_interval_; }  // of the newest interval
  int64_t lost_steps() const { return lost_steps_; }          // that the last start trains again
  // Steps behind which later starts began, of the course as it stands.
  const std::vector<int64_t>& restarts() const { return restarts_; }
  const RunAccount& account() const { return account_; }
  const std::optional<MetricRecord>& samples() const { return samples_; }  // the newest
  double memory_planned() const { return memory_planned_; }                // bytes; 0: not known
  const std::string& device() const { return device_; }
  int64_t saved_step() const { return saved_step_; }  // the newest checkpoint of the course; 0: none
  // Seconds of training a step in the last start, as for the ETA of the log; 0: not known yet.
  double pace() const;

  const std::deque<EventLine>& events() const { return events_; }          // by time, some hundred
  const std::deque<EventLine>& stragglers() const { return stragglers_; }  // of the last start

 private:
  void see_event(const MetricRecord& record);
  void go_back_to(int64_t step);  // where a start begins

  Curves curves_;
  RunAccount account_;
  std::vector<int64_t> restarts_;
  std::optional<MetricRecord> samples_;
  double memory_planned_ = 0;
  std::string device_;
  int64_t lost_steps_ = 0, saved_step_ = 0;
  std::optional<StartAccount> start_;
  int64_t starts_ = 0;
  bool has_ended_ = false;
  bool is_done_ = false, was_done_ = false;  // after the last start, and before it
  std::optional<int64_t> first_step_;
  int64_t step_ = 0, total_steps_ = 0;
  double tokens_per_step_ = 0;
  int64_t last_time_ = 0;
  double last_interval_ = 0;
  double trained_seconds_ = 0;  // of the intervals of the last start
  std::deque<EventLine> events_, stragglers_;
};

}  // namespace tokamak

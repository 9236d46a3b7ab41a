// The state of a watched run, from its records so far: curves, the account of its time, its newest events. A point of a
// curve takes 50 bytes and other old records are dropped, so a run of weeks fits in memory.
#pragma once

#include <deque>
#include <optional>

#include "report/curves.h"
#include "report/run_account.h"
#include "watch/event_text.h"

namespace tokamak {

class RunView {
 public:
  RunView();
  void see(const MetricRecord& record);  // in the order of the file

  const Curves& curves() const { return curves_; }
  const RunAccount& account() const { return account_; }
  int64_t step() const { return step_; }                              // reached by the last record
  const std::vector<int64_t>& restarts() const { return restarts_; }  // steps after which later starts began
  double memory_planned() const { return memory_planned_; }           // bytes; 0: not known
  const std::string& device() const { return device_; }
  const std::deque<EventLine>& events() const { return events_; }           // by time
  const std::optional<EventLine>& straggler() const { return straggler_; }  // the newest of the last start

 private:
  void see_event(const MetricRecord& record);

  Curves curves_;
  RunAccount account_;
  std::vector<int64_t> restarts_;
  int64_t step_ = 0;
  double memory_planned_ = 0;
  std::string device_;
  std::deque<EventLine> events_;
  std::optional<EventLine> straggler_;
};

}  // namespace tokamak

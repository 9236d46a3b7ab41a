// The state of a watched run, from its records so far: curves, the account of its time, its newest events. It keeps 50
// bytes for each point of a curve and drops all else of old records, so a run of weeks fits in memory.
#pragma once

#include <deque>
#include <optional>

#include "report/curves.h"
#include "report/run_account.h"
#include "watch/frame.h"

namespace tokamak {

// An event as a line of text.
struct EventLine {
  int64_t time = 0;  // milliseconds since 1970
  std::string text;
  Style style = Style::kPlain;
};

struct RunView {
  RunView();
  void see(const MetricRecord& record);  // in the order of the file

  Curves curves;
  RunAccount account;
  int64_t step = 0;               // reached by the last record
  std::vector<int64_t> restarts;  // steps after which later starts began
  double memory_planned = 0;      // bytes; 0: not known
  std::string device;
  std::deque<EventLine> events;        // by time
  std::optional<EventLine> straggler;  // the newest of the last start

 private:
  void see_event(const MetricRecord& record);
};

}  // namespace tokamak

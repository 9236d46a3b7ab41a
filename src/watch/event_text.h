// An event of a run as a line of text.
#pragma once

#include <string>

#include "monitor/record.h"
#include "report/run_report.h"
#include "watch/frame.h"

namespace tokamak {

struct EventLine {
  int64_t time = 0;  // milliseconds since 1970
  std::string text;
  Style style = Style::kPlain;
};

// `start`, `number`: the event's start and its number from 1. `lost`: steps that it trains again.
EventLine line_of(const MetricRecord& record, const StartReport& start, int64_t number, int64_t lost);

}  // namespace tokamak

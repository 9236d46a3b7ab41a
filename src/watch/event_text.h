// An event of a run as a line for those who watch it.
#pragma once

#include <string>

#include "monitor/record.h"
#include "watch/frame.h"

namespace tokamak {

struct EventLine {
  int64_t time = 0;  // milliseconds since 1970
  std::string text;
  Style style = Style::kPlain;
};

// `start`: which start of the run it is of, from 1.
EventLine line_of(const MetricRecord& record, int64_t start);

}  // namespace tokamak

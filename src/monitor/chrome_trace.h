// Events in Chrome's Trace Event Format, which Perfetto and chrome://tracing open: a process for each rank, a row for
// each of its streams, spans of time.
#pragma once

#include <string>
#include <vector>

#include "monitor/record.h"

namespace tokamak {

// The events of one rank; file() joins those of several to a trace.
class ChromeTrace {
 public:
  explicit ChromeTrace(int rank);

  struct Span {
    std::string name;
    const char* category = "";
    double begin = 0, end = 0;       // seconds, of one clock for all ranks
    std::string detail;              // may be empty
    std::vector<NamedValue> values;  // may be empty
  };
  void name_row(int row, const std::string& name);
  void add(int row, const Span& span);

  const std::string& events() const { return events_; }
  static std::string file(const std::vector<std::string>& events);  // by rank; empty ones are left out

 private:
  void append(const std::string& event) { events_ += events_.empty() ? event : ",\n" + event; }

  int rank_;
  std::string events_;
};

}  // namespace tokamak

// Traces: the steps to trace, and events in Chrome's Trace Event Format, which Perfetto and chrome://tracing open. In
// them each rank is a process, and each stream of a rank is a row of spans.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "monitor/record.h"

namespace tokamak {

// MetricsOptions::trace.
struct TracedSteps {
  int64_t first = 0, last = -1;
  bool contains(int64_t step) const { return first <= step && step <= last; }
};

// Reads "10-12", "10" or "" (none); nullopt for any other text.
std::optional<TracedSteps> parse_traced_steps(const std::string& text);

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

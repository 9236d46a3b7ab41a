// Which steps of a run are traced (MetricsOptions::trace).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tokamak {

struct TracedSteps {
  int64_t first = 0, last = -1;
  bool contains(int64_t step) const { return first <= step && step <= last; }
};

// "10-12" or "10"; empty: none. Nothing where the text is something else.
std::optional<TracedSteps> parse_traced_steps(const std::string& text);

}  // namespace tokamak

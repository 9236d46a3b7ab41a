// The steps of a run that are traced (MetricsOptions::trace).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tokamak {

struct TracedSteps {
  int64_t first = 0, last = -1;
  bool contains(int64_t step) const { return first <= step && step <= last; }
};

// Reads "10-12", "10" or "" (none); nullopt for any other text.
std::optional<TracedSteps> parse_traced_steps(const std::string& text);

}  // namespace tokamak

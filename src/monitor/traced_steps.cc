#include "monitor/traced_steps.h"

#include <charconv>
#include <string_view>

namespace tokamak {

std::optional<TracedSteps> parse_traced_steps(const std::string& text) {
  if (text.empty()) return TracedSteps{};
  const auto number = [](std::string_view digits) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size() ? value : 0;
  };
  const std::string_view view = text;
  const size_t dash = view.find('-');
  const TracedSteps steps{number(view.substr(0, dash)), number(view.substr(dash == view.npos ? 0 : dash + 1))};
  return steps.first < 1 || steps.last < steps.first ? std::nullopt : std::optional(steps);
}

}  // namespace tokamak

#include "monitor/chrome_trace.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/strings.h"

namespace tokamak {

namespace {

using nlohmann::ordered_json;

constexpr double kMicroseconds = 1e6;  // the format's unit

std::string metadata(int rank, int row, const char* what, const std::string& name) {
  return ordered_json{{"ph", "M"}, {"pid", rank}, {"tid", row}, {"name", what}, {"args", {{"name", name}}}}.dump();
}

}  // namespace

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

ChromeTrace::ChromeTrace(int rank) : rank_(rank) { append(metadata(rank, 0, "process_name", str("rank ", rank))); }

void ChromeTrace::name_row(int row, const std::string& name) { append(metadata(rank_, row, "thread_name", name)); }

void ChromeTrace::add(int row, const Span& span) {
  ordered_json event = {{"ph", "X"},
                        {"pid", rank_},
                        {"tid", row},
                        {"name", span.name},
                        {"cat", span.category},
                        {"ts", kMicroseconds * span.begin},
                        {"dur", kMicroseconds * (span.end - span.begin)}};
  if (!span.detail.empty()) event["args"]["call"] = span.detail;
  for (const NamedValue& value : span.values) event["args"][value.name] = value.value;
  append(event.dump());
}

std::string ChromeTrace::file(const std::vector<std::string>& events) {
  std::vector<std::string> present;
  for (const std::string& part : events) {
    if (!part.empty()) present.push_back(part);
  }
  return "{\"traceEvents\": [\n" + join(present, ",\n") + "\n]}\n";
}

}  // namespace tokamak

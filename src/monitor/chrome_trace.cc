#include "monitor/chrome_trace.h"

#include <nlohmann/json.hpp>

#include "base/strings.h"

namespace tokamak {

namespace {

using nlohmann::ordered_json;

ordered_json metadata(int rank, int row, const char* what, const std::string& name) {
  return {{"ph", "M"}, {"pid", rank}, {"tid", row}, {"name", what}, {"args", {{"name", name}}}};
}

constexpr double kMicroseconds = 1e6;  // the format's unit

}  // namespace

ChromeTrace::ChromeTrace(int rank) : rank_(rank) {
  append(metadata(rank, 0, "process_name", str("rank ", rank)).dump());
}

void ChromeTrace::name_row(int row, const std::string& name) {
  append(metadata(rank_, row, "thread_name", name).dump());
}

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
  std::string text;
  for (const std::string& part : events) text += part.empty() ? "" : str(text.empty() ? "" : ",\n", part);
  return "{\"traceEvents\": [\n" + text + "\n]}\n";
}

void ChromeTrace::append(const std::string& event) { events_ += str(events_.empty() ? "" : ",\n", event); }

}  // namespace tokamak

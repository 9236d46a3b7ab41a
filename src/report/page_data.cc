// Series are most of a page, so their numbers are written short: six digits of a value. Series of the same records
// share their steps, tokens and hours.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "report/json.h"
#include "report/page.h"

namespace tokamak {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kDigits = 6, kDigitsOfHours = 8;

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string short_text(double value, int digits) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, digits).ptr;
  return {text.data(), end};
}

template <class Print>
std::string array_of(const std::vector<SeriesPoint>& points, const Print& print) {
  std::string text = "[";
  for (const SeriesPoint& point : points) {
    if (text.size() > 1) text += ',';
    text += print(point);
  }
  return text + "]";
}

std::string values_text(const std::vector<SeriesPoint>& points, double SeriesPoint::*member) {
  return array_of(points, [&](const SeriesPoint& point) { return short_text(point.*member, kDigits); });
}

std::string axis_text(const std::vector<SeriesPoint>& points) {
  return "{\"step\":" + array_of(points, [](const SeriesPoint& point) { return std::to_string(point.step); }) +
         ",\"tokens\":" + array_of(points, [](const SeriesPoint& point) { return std::to_string(point.tokens); }) +
         ",\"hours\":" +
         array_of(points, [](const SeriesPoint& point) { return short_text(point.hours, kDigitsOfHours); }) + "}";
}

// {"axes":[...],"series":{"loss/avg":{"axis":0,"records":100000,"mean":[...],"low":[...],"high":[...]}}}: low and high
// only where points stand for several records.
std::string series_text(const std::vector<Series>& all) {
  std::vector<std::string> axes;
  std::string text;
  for (const Series& series : all) {
    const std::string axis = axis_text(series.points);
    const auto known = std::find(axes.begin(), axes.end(), axis) - axes.begin();
    if (known == static_cast<std::ptrdiff_t>(axes.size())) axes.push_back(axis);
    text += text.empty() ? "" : ",\n";
    text += dump(series.name) + ":{\"axis\":" + std::to_string(known) +
            ",\"records\":" + std::to_string(series.records) +
            ",\"mean\":" + values_text(series.points, &SeriesPoint::mean);
    if (series.records > static_cast<int64_t>(series.points.size())) {
      text += ",\"low\":" + values_text(series.points, &SeriesPoint::low) +
              ",\"high\":" + values_text(series.points, &SeriesPoint::high);
    }
    text += "}";
  }
  std::string joined;
  for (const std::string& axis : axes) joined += (joined.empty() ? "" : ",\n") + axis;
  return "\"axes\":[" + joined + "],\n\"series\":{" + text + "}";
}

std::string events_text(const PageRun& run) {
  Json events = Json::array();
  for (const PageEvent& one : run.events) {
    const RunEvent& event = *one.record.event;
    Json values = Json::object();
    for (const NamedText& text : event.texts) values[text.name] = text.text;
    for (const NamedValue& value : one.record.values) values[value.name] = value.value;
    events.push_back({{"start", one.start},
                      {"step", one.record.step},
                      {"time", one.record.time},
                      {"name", event.name},
                      {"detail", event.detail},
                      {"values", values}});
  }
  return "\"events\":" + dump(events) + ",\n\"events_left_out\":" + std::to_string(run.events_left_out);
}

std::string samples_text(const PageRun& run) {
  Json all = Json::array();
  for (const MetricRecord& record : run.samples) {
    Json texts = Json::array();
    for (const SampleText& one : record.samples) texts.push_back({one.prompt, one.text});
    all.push_back({{"step", record.step}, {"texts", texts}});
  }
  return "\"samples\":" + dump(all) + ",\n\"samples_left_out\":" + std::to_string(run.samples_left_out);
}

std::string config_text(const std::vector<ConfigEntry>& config) {
  Json entries = Json::array();
  for (const ConfigEntry& one : config) entries.push_back({one.key, one.value, one.standard});
  return "\"config\":" + dump(entries);
}

// Thousandths of the decimal logarithm, which are six digits at most and exact to 0.12 %; what is zero has none.
constexpr int64_t kZero = -1'000'000;

std::string cell_text(float value) {
  if (!std::isfinite(value)) return "null";
  return std::to_string(value > 0 ? std::llround(1000 * std::log10(static_cast<double>(value))) : kZero);
}

// {"names":[...],"from":[steps],"to":[steps],"records":100,"weights":{"rows":[[-1699,...],...],"non_finite":[[row,
// column, elements],...]},"gradients":...,"ratio":...}
std::string tensors_text(const TensorMap& map) {
  Json from = Json::array(), to = from;
  for (const TensorMap::Column& column : map.columns) {
    from.push_back(column.first);
    to.push_back(column.last);
  }
  std::string text = "\"tensors\":{\"names\":" + dump(map.names) + ",\"from\":" + dump(from) + ",\"to\":" + dump(to) +
                     ",\"records\":" + std::to_string(map.records);
  for (size_t kind = 0; kind < kMapKinds.size(); ++kind) {
    Json non_finite = Json::array();
    for (const auto& one : map.cells[kind].non_finite) non_finite.push_back({one.row, one.column, one.elements});
    text += str(",\n\"", kMapKinds[kind], "\":{\"non_finite\":", dump(non_finite), ",\"rows\":[");
    for (int64_t row = 0; row < std::ssize(map.names); ++row) {
      text += row > 0 ? ",\n[" : "[";
      for (int64_t column = 0; column < std::ssize(map.columns); ++column) {
        text += (column > 0 ? "," : "") + cell_text(map.at(static_cast<MapKind>(kind), row, column));
      }
      text += "]";
    }
    text += "]}";
  }
  return text + "}";
}

std::string traces_text(const std::vector<TraceSummary>& traces) {
  Json all = Json::array();
  for (const TraceSummary& trace : traces) {
    Json operations = Json::array();
    for (const TracedOperation& one : trace.operations) {
      operations.push_back({{"name", one.name},
                            {"stream", one.stream},
                            {"calls", one.calls},
                            {"seconds", one.seconds},
                            {"flops", one.flops},
                            {"bytes", one.bytes},
                            {"exchanged", one.exchanged}});
    }
    all.push_back(
        {{"file", trace.file}, {"steps", trace.steps}, {"seconds", trace.seconds}, {"operations", operations}});
  }
  return "\"traces\":" + dump(all);
}

std::string machine_text(const PageRun& run) {
  return "\"memory\":" + dump(Json{{"planned", run.memory_planned}, {"committed", run.memory_committed}}) +
         ",\n\"machine\":" +
         dump(Json{{"device", run.device}, {"flops", run.peak_flops}, {"memory_rate", run.memory_rate}});
}

// Within a <script>, "</script" and "<!--" would end or change what follows; in JSON, < stands in texts only.
std::string without_tags(const std::string& json) {
  std::string out;
  for (const char c : json) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string page_data(const std::vector<PageRun>& runs, const PageOptions& options) {
  std::string text = "{\"program\":" + dump(options.program) + ",\n\"runs\":[";
  for (const PageRun& run : runs) {
    text += &run == &runs.front() ? "" : ",\n";
    text += "{\"name\":" + dump(run.name) + ",\n\"parameters\":" + str(run.parameters) +
            ",\n\"report\":" + json_of(run.report) + ",\n" + machine_text(run) + ",\n" + events_text(run) + ",\n" +
            samples_text(run) + ",\n" + tensors_text(run.tensors) + ",\n" + traces_text(run.traces) + ",\n" +
            config_text(run.config) + ",\n" + series_text(run.series) + "}";
  }
  return without_tags(text + "]}");
}

}  // namespace tokamak

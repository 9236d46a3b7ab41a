// The page's data. Curves are most of its bytes: values have six digits, and curves of the same records share their
// axis.
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
constexpr double kHour = 3.6e6;  // milliseconds

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string short_text(double value, int digits) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, digits).ptr;
  return {text.data(), end};
}

template <class Values, class Print>
std::string array_of(const Values& values, const Print& print) {
  std::string text = "[";
  for (const auto& value : values) {
    if (text.size() > 1) text += ',';
    text += print(value);
  }
  return text + "]";
}

std::string values_text(const std::vector<CurvePoint>& points, double CurvePoint::*member) {
  return array_of(points, [&](const CurvePoint& point) { return short_text(point.*member, kDigits); });
}

std::string axis_text(const std::vector<CurvePoint>& points, int64_t begin) {
  const auto hours = [&](const CurvePoint& point) {
    return short_text(static_cast<double>(point.time - begin) / kHour, kDigitsOfHours);
  };
  return "{\"step\":" + array_of(points, [](const CurvePoint& point) { return std::to_string(point.step); }) +
         ",\"tokens\":" + array_of(points, [](const CurvePoint& point) { return std::to_string(point.tokens); }) +
         ",\"hours\":" + array_of(points, hours) + "}";
}

// {"axes":[...],"series":{"loss/avg":{"axis":0,"records":100000,"mean":[...],"low":[...],"high":[...]}}}; low and high
// only for buckets.
std::string series_text(const PageRun& run) {
  std::vector<std::string> axes;
  std::string text;
  for (const Series& series : run.series) {
    const std::string axis = axis_text(series.points, run.report.starts.front().exec);
    const auto known = std::find(axes.begin(), axes.end(), axis) - axes.begin();
    if (known == std::ssize(axes)) axes.push_back(axis);
    text += str(text.empty() ? "" : ",\n", dump(series.name), ":{\"axis\":", known, ",\"records\":", series.records,
                ",\"mean\":", values_text(series.points, &CurvePoint::mean));
    if (series.records > std::ssize(series.points)) {
      text += ",\"low\":" + values_text(series.points, &CurvePoint::low) +
              ",\"high\":" + values_text(series.points, &CurvePoint::high);
    }
    text += "}";
  }
  return "\"axes\":[" + join(axes, ",\n") + "],\n\"series\":{" + text + "}";
}

Json events_json(const PageRun& run) {
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
  return events;
}

Json samples_json(const PageRun& run) {
  Json all = Json::array();
  for (const MetricRecord& record : run.samples) {
    Json texts = Json::array();
    for (const SampleText& one : record.samples) texts.push_back({one.prompt, one.text});
    all.push_back({{"step", record.step}, {"texts", texts}});
  }
  return all;
}

Json config_json(const PageRun& run) {
  Json entries = Json::array();
  for (const ConfigEntry& one : run.config) entries.push_back({one.key, one.value, one.standard});
  return entries;
}

// Thousandths of the decimal logarithm: at most six digits, exact to 0.12 %. Zero has no logarithm.
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
  std::string text =
      str("{\"names\":", dump(map.names), ",\"from\":", dump(from), ",\"to\":", dump(to), ",\"records\":", map.records);
  const auto columns = static_cast<std::ptrdiff_t>(map.columns.size());
  for (size_t kind = 0; kind < kMapKinds.size(); ++kind) {
    const TensorMap::Cells& cells = map.cells[kind];
    Json non_finite = Json::array();
    for (const auto& one : cells.non_finite) non_finite.push_back({one.row, one.column, one.elements});
    std::vector<std::string> rows;
    for (auto row = cells.values.begin(); row != cells.values.end(); row += columns) {
      rows.push_back(array_of(std::span(row, row + columns), cell_text));
    }
    text +=
        str(",\n\"", kMapKinds[kind], "\":{\"non_finite\":", dump(non_finite), ",\"rows\":[", join(rows, ",\n"), "]}");
  }
  return text + "}";
}

// "</script" and "<!--" would end or change the <script> around the data; in JSON, < occurs in texts only.
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
    text += str(&run == &runs.front() ? "" : ",\n", "{\"name\":", dump(run.name), ",\n\"parameters\":", run.parameters,
                ",\n\"memory_planned\":", run.memory_planned, ",\n\"device\":", dump(run.device),
                ",\n\"report\":", json_of(run.report), ",\n\"events\":", dump(events_json(run)),
                ",\n\"events_left_out\":", run.events_left_out, ",\n\"samples\":", dump(samples_json(run)),
                ",\n\"samples_left_out\":", run.samples_left_out, ",\n\"tensors\":", tensors_text(run.tensors),
                ",\n\"config\":", dump(config_json(run)), ",\n", series_text(run), "}");
  }
  return without_tags(text + "]}");
}

}  // namespace tokamak

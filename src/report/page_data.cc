// The page's data. Curves are most of its bytes: values have six digits, and curves of the same records share their
// axis.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "report/page.h"
#include "report/text.h"

namespace tokamak {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kDigits = 6, kDigitsOfHours = 8;
constexpr double kHour = 3.6e6;  // milliseconds

Json rounded(double value, int digits = kDigits) {
  if (!std::isfinite(value)) return nullptr;
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, digits).ptr;
  return Json::parse(text.data(), end);
}

template <class Values, class ValueOf>
Json array_of(const Values& values, const ValueOf& value_of) {
  Json array = Json::array();
  for (const auto& value : values) array.push_back(value_of(value));
  return array;
}

Json axis_json(const std::vector<CurvePoint>& points, int64_t begin) {
  const auto hours = [&](const CurvePoint& point) {
    return rounded(double(point.time - begin) / kHour, kDigitsOfHours);
  };
  return {{"step", array_of(points, [](const CurvePoint& point) { return point.step; })},
          {"tokens", array_of(points, [](const CurvePoint& point) { return point.tokens; })},
          {"hours", array_of(points, hours)}};
}

// {"loss/avg":{"axis":0,"records":100000,"mean":[...],"low":[...],"high":[...]}}; low and high only for buckets.
Json series_json(const PageRun& run, Json& axes) {
  Json all = Json::object();
  for (const Series& series : run.series) {
    const Json axis = axis_json(series.points, run.report.starts.front().exec);
    const auto known = std::find(axes.begin(), axes.end(), axis) - axes.begin();
    if (known == std::ssize(axes)) axes.push_back(axis);
    const auto values = [&](double CurvePoint::*member) {
      return array_of(series.points, [&](const CurvePoint& point) { return rounded(point.*member); });
    };
    Json& json = all[series.name] = {{"axis", known}, {"records", series.records}, {"mean", values(&CurvePoint::mean)}};
    if (series.records <= std::ssize(series.points)) continue;
    json["low"] = values(&CurvePoint::low);
    json["high"] = values(&CurvePoint::high);
  }
  return all;
}

Json event_json(const PageEvent& one) {
  const RunEvent& event = *one.record.event;
  Json values = Json::object();
  for (const NamedText& text : event.texts) values[text.name] = text.text;
  for (const NamedValue& value : one.record.values) values[value.name] = value.value;
  return {{"start", one.start}, {"step", one.record.step}, {"time", one.record.time},
          {"name", event.name}, {"detail", event.detail},  {"values", values}};
}

Json sample_json(const MetricRecord& record) {
  const auto texts = [](const SampleText& one) { return Json::array({one.prompt, one.text}); };
  return {{"step", record.step}, {"texts", array_of(record.samples, texts)}};
}

// Thousandths of the decimal logarithm: at most six digits, exact to 0.12 %. Zero has no logarithm.
constexpr int64_t kZero = -1'000'000;

Json cell_json(float value) {
  if (!std::isfinite(value)) return nullptr;
  return value > 0 ? std::llround(1000 * std::log10(double(value))) : kZero;
}

// {"names":[...],"from":[steps],"to":[steps],"records":100,"kinds":{"weights":{"rows":[[-1699,...],null,...],
// "non_finite":[[row, column, elements],...]},"gradients":...,"ratio":...}}. A row is null if it has no cells.
Json tensors_json(const TensorMap& map) {
  Json json = {{"names", map.names},
               {"from", array_of(map.columns, [](const TensorMap::Column& column) { return column.first; })},
               {"to", array_of(map.columns, [](const TensorMap::Column& column) { return column.last; })},
               {"records", map.records},
               {"kinds", Json::object()}};
  const auto columns = std::ssize(map.columns);
  for (const TensorMap::Kind& cells : map.kinds) {
    Json rows = Json::array();
    for (auto row = cells.values.begin(); row != cells.values.end(); row += columns) {
      const bool is_empty = std::all_of(row, row + columns, [](float value) { return std::isnan(value); });
      rows.push_back(is_empty ? Json() : array_of(std::span(row, row + columns), cell_json));
    }
    const auto place = [](const TensorMap::NonFinite& one) { return Json::array({one.row, one.column, one.elements}); };
    json["kinds"][cells.name] = {{"non_finite", array_of(cells.non_finite, place)}, {"rows", rows}};
  }
  return json;
}

Json run_json(const PageRun& run) {
  const auto entry = [](const ConfigEntry& one) { return Json::array({one.key, one.value, one.standard}); };
  Json axes = Json::array(), series = series_json(run, axes);
  return {{"name", run.name},
          {"parameters", run.parameters},
          {"memory_planned", run.memory_planned},
          {"device", run.device},
          {"report", json_of(run.report)},
          {"events", array_of(run.events, event_json)},
          {"events_left_out", run.events_left_out},
          {"samples", array_of(run.samples, sample_json)},
          {"samples_left_out", run.samples_left_out},
          {"tensors", tensors_json(run.tensors)},
          {"config", array_of(run.config, entry)},
          {"axes", axes},
          {"series", series}};
}

}  // namespace

// "</script" and "<!--" would end or change the <script> around the data; in JSON, < occurs in texts only.
std::string page_data(const std::vector<PageRun>& runs, const std::string& program) {
  Json spent;
  for (const SpentKind& one : kAllSpent) spent[one.key] = one.label;
  const Json data = {{"program", program}, {"spent", spent}, {"runs", array_of(runs, run_json)}};
  std::string safe;
  for (const char c : data.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    safe += c == '<' ? "\\u003c" : std::string(1, c);
  }
  return safe;
}

}  // namespace tokamak

#include "monitor/jsonl.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/lines.h"
#include "formats/parse_json.h"
#include "monitor/history.h"

namespace tokamak {

namespace {

using Json = nlohmann::ordered_json;

// The shortest decimal that reads back as the same f32. It halves the length in the file.
double shortest(double f32) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), static_cast<float>(f32)).ptr;
  double value = f32;
  std::from_chars(digits.data(), end, value);
  return value;
}

// The kinds of all tensors, in the order in which they come.
std::vector<std::string> kinds_of(const std::vector<TensorRecord>& tensors) {
  std::vector<std::string> kinds;
  for (const TensorRecord& one : tensors) {
    for (const TensorRecord::Part& part : one.parts) {
      if (std::find(kinds.begin(), kinds.end(), part.kind) == kinds.end()) kinds.push_back(part.kind);
    }
  }
  return kinds;
}

void add_tensors(Json& json, const std::vector<TensorRecord>& tensors) {
  Json names = Json::array(), elements = names;
  for (const TensorRecord& one : tensors) {
    names.push_back(one.name);
    elements.push_back(one.elements);
  }
  json["tensors"] = std::move(names);
  json["elements"] = std::move(elements);
  for (const std::string& kind : kinds_of(tensors)) {
    const auto add = [&, &of = json[kind]](const char* key, const auto& value_of) {
      for (const TensorRecord& one : tensors) {
        const TensorSummary* const values = one.find(kind);
        of[key].push_back(values != nullptr ? Json(value_of(*values)) : Json());
      }
    };
    add("rms", [](const TensorSummary& one) { return one.rms; });
    add("min", [](const TensorSummary& one) { return shortest(one.min); });
    add("max", [](const TensorSummary& one) { return shortest(one.max); });
    add("non_finite", [](const TensorSummary& one) { return one.non_finite; });
    add("zeros", [](const TensorSummary& one) { return one.zeros; });
    add("log2_first", [](const TensorSummary& one) { return one.first; });
    add("log2_counts", [](const TensorSummary& one) { return one.counts; });
  }
}

double number_or_nan(const Json& json) {
  return json.is_number() ? json.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

// Throws if the line is not as add_tensors writes it.
std::vector<TensorRecord> tensors_of(const Json& json) {
  std::vector<TensorRecord> tensors;
  const Json& names = json.at("tensors");
  for (size_t i = 0; i < names.size(); ++i) {
    TensorRecord& one = tensors.emplace_back();
    one.name = names.at(i).get<std::string>();
    one.elements = whole_of<int64_t>(json.at("elements").at(i));
    for (const auto& [kind, of] : json.items()) {
      if (!of.is_object() || of.at("non_finite").at(i).is_null()) continue;
      TensorSummary values{.rms = number_or_nan(of.at("rms").at(i)),
                           .min = number_or_nan(of.at("min").at(i)),
                           .max = number_or_nan(of.at("max").at(i)),
                           .non_finite = whole_of<int64_t>(of.at("non_finite").at(i)),
                           .zeros = whole_of<int64_t>(of.at("zeros").at(i)),
                           .first = whole_of<int>(of.at("log2_first").at(i)),
                           .counts = {}};
      for (const Json& count : of.at("log2_counts").at(i)) values.counts.push_back(whole_of<int64_t>(count));
      one.parts.push_back({kind, std::move(values)});
    }
  }
  return tensors;
}

Json json_of(const MetricRecord& record) {
  Json json;
  if (record.event) json["event"] = record.event->name;
  json["step"] = record.step;
  if (record.time > 0) json["time"] = utc_text(record.time);
  if (record.event) {
    json["detail"] = record.event->detail;
    for (const NamedText& one : record.event->texts) json[one.name] = one.text;
  }
  for (const NamedValue& one : record.values) {
    json[one.name] = one.whole ? Json(static_cast<int64_t>(one.value)) : Json(one.value);
  }
  for (const SampleText& one : record.samples) json["samples"].push_back({{"prompt", one.prompt}, {"text", one.text}});
  if (!record.tensors.empty()) add_tensors(json, record.tensors);
  return json;
}

std::string text_or_empty(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<MetricRecord> record_of(const Json& json) {
  if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) return std::nullopt;
  MetricRecord record{.step = json["step"].get<int64_t>(), .time = parse_utc(text_or_empty(json, "time")).value_or(0)};
  if (json.contains("event")) record.event = {text_or_empty(json, "event"), text_or_empty(json, "detail"), {}};
  for (const auto& [name, value] : json.items()) {
    if (name == "step" || name == "event" || name == "time" || name == "detail") continue;
    if (value.is_number()) record.values.push_back({name, value.get<double>(), value.is_number_integer()});
    if (value.is_string() && record.event) record.event->texts.push_back({name, value.get<std::string>()});
    if (name != "samples" || !value.is_array()) continue;
    for (const Json& one : value) {
      if (one.is_object()) record.samples.push_back({text_or_empty(one, "prompt"), text_or_empty(one, "text")});
    }
  }
  return record;
}

}  // namespace

JsonlFile::JsonlFile(const std::string& path) : file_(path, Kind::kConfig) {}

void JsonlFile::append(const MetricRecord& record) {
  // A host or a path may hold bytes that are not UTF-8.
  const std::string reason = file_.append(json_of(record).dump(-1, ' ', false, Json::error_handler_t::replace));
  if (!reason.empty()) fail(Kind::kConfig, str("cannot write ", path(), ": ", reason));
}

void JsonlFile::write(const MetricRecord& record) {
  if (record.tensors.empty()) return append(record);
  append({.step = record.step, .time = record.time, .event = record.event, .values = record.values});
}

bool TensorFile::takes(const MetricRecord& record) const {
  return !record.tensors.empty() || (record.event && sets_course(record));
}

void TensorFile::write(const MetricRecord& record) {
  MetricRecord part{.step = record.step, .time = record.time, .tensors = record.tensors};
  if (record.event) part.event = {record.event->name, "", {}};
  append(part);
}

std::optional<MetricRecord> parse_record(std::string_view line) { return record_of(try_parse_json<Json>(line)); }

void read_records(const std::string& path, const std::function<void(const MetricRecord&)>& see, ReadTensors tensors) {
  if (!exists(path)) return;
  LineReader lines(path);
  for (std::string line; lines.next(line, kLongestRecord);) {
    const Json json = try_parse_json<Json>(line);
    std::optional<MetricRecord> record = record_of(json);
    if (!record) continue;
    if (tensors == ReadTensors::kYes && json.contains("tensors")) {
      try {
        record->tensors = tensors_of(json);
      } catch (const Json::exception&) {  // another program has written the line
      }
    }
    see(*record);
  }
}

}  // namespace tokamak

#include "monitor/jsonl.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"

namespace tokamak {

namespace {

using Json = nlohmann::ordered_json;

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
  return json;
}

// A host or a path may hold bytes that are no UTF-8: no reason to end a run.
std::string line_of(const MetricRecord& record) {
  return json_of(record).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<SampleText> samples_of(const Json& list) {
  std::vector<SampleText> samples;
  const auto text = [](const Json& one, const char* key) {
    return one.contains(key) && one[key].is_string() ? one[key].get<std::string>() : "";
  };
  for (const Json& one : list) {
    if (one.is_object()) samples.push_back({text(one, "prompt"), text(one, "text")});
  }
  return samples;
}

std::optional<MetricRecord> record_of(const Json& json) {
  if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) return std::nullopt;
  const auto text = [&](const char* key) {
    return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
  };
  MetricRecord record{.step = json["step"].get<int64_t>(), .time = parse_utc(text("time")).value_or(0)};
  if (json.contains("event")) record.event = {text("event"), text("detail"), {}};
  for (const auto& [name, value] : json.items()) {
    if (name == "step" || name == "event" || name == "time" || name == "detail") continue;
    if (value.is_number()) record.values.push_back({name, value.get<double>(), value.is_number_integer()});
    if (name == "samples" && value.is_array()) record.samples = samples_of(value);
    if (value.is_string() && record.event) record.event->texts.push_back({name, value.get<std::string>()});
  }
  return record;
}

}  // namespace

JsonlFile::JsonlFile(const std::string& path) : file_(path, Kind::kConfig) {}

void JsonlFile::write(const MetricRecord& record) {
  const std::string reason = file_.append(line_of(record));
  if (!reason.empty()) fail(Kind::kConfig, str("cannot write ", file_.path(), ": ", reason));
}

std::optional<MetricRecord> parse_record(std::string_view line) { return record_of(Json::parse(line, nullptr, false)); }

void read_records(const std::string& path, const std::function<void(const MetricRecord&)>& see) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (const auto record = parse_record(line)) see(*record);
  }
}

}  // namespace tokamak

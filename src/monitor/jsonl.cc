#include "monitor/jsonl.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"

namespace tokamak {

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const MetricRecord& record) {
  Json json;
  if (record.event) json["event"] = record.event->name;
  json["step"] = record.step;
  if (record.event) {
    json["time"] = record.event->time;
    json["detail"] = record.event->detail;
  }
  for (const NamedValue& one : record.values) {
    json[one.name] = one.whole ? Json(static_cast<int64_t>(one.value)) : Json(one.value);
  }
  return json;
}

std::optional<MetricRecord> record_of(const Json& json) {
  if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) return std::nullopt;
  const auto text = [&](const char* key) {
    return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
  };
  MetricRecord record{.step = json["step"].get<int64_t>()};
  if (json.contains("event")) record.event = {text("event"), text("time"), text("detail")};
  for (const auto& [name, value] : json.items()) {
    if (name == "step" || !value.is_number()) continue;
    record.values.push_back({name, value.get<double>(), value.is_number_integer()});
  }
  return record;
}

}  // namespace

JsonlFile::JsonlFile(const std::string& path) : path_(path), file_(path, std::ios::app) {
  if (!file_) fail_errno(Kind::kConfig, str("cannot append to ", path_), "check run.output_dir");
}

void JsonlFile::write(const MetricRecord& record) {
  if (!file_.is_open()) return;
  file_ << json_of(record).dump() << "\n" << std::flush;
  if (file_) return;
  // A log is not worth a run: say so once, and train on.
  log::warning("cannot write ", path_, "; no more metrics go there");
  file_.close();
}

void read_records(const std::string& path, const std::function<void(const MetricRecord&)>& see) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (const auto record = record_of(Json::parse(line, nullptr, false))) see(*record);
  }
}

}  // namespace tokamak

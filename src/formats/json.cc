#include "formats/json.h"

#include <set>
#include <vector>

#include "base/file.h"

namespace tokamak {

namespace {

constexpr int64_t kLargestFile = int64_t{64} << 20;
constexpr int kDeepest = 16;

}  // namespace

nlohmann::json parse_json_object(std::string_view text, const std::string& path, Kind kind) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  using JsonEvent = nlohmann::json::parse_event_t;
  const auto check = [&](int depth, JsonEvent event, nlohmann::json& value) {
    if (depth > kDeepest) fail(kind, str(path, " is nested more than ", kDeepest, " deep"));
    if (event == JsonEvent::object_start) keys.emplace_back();
    if (event == JsonEvent::object_end) keys.pop_back();
    if (event == JsonEvent::key && !keys.back().insert(value.get<std::string>()).second) {
      fail(kind, str(path, " has the key '", value.get<std::string>(), "' twice"));
    }
    return true;
  };
  try {
    nlohmann::json json = nlohmann::json::parse(text, check);
    if (!json.is_object()) fail(kind, str(path, " holds no JSON object"));
    return json;
  } catch (const nlohmann::json::exception& error) {
    fail(kind, str(path, " is no JSON: ", error.what()));
  }
}

nlohmann::json read_json_object(const std::string& path, Kind kind) {
  const int64_t bytes = InputFile(path, kind).size();
  if (bytes > kLargestFile) {
    fail(kind, str(path, " has ", bytes, " bytes; a description of a model is never above ", kLargestFile));
  }
  return parse_json_object(read_text(path, kind), path, kind);
}

}  // namespace tokamak

// JSON files of others, read strictly: UTF-8, no key twice, no deep nesting, of a bounded size; and typed access to
// their values, where a wrong type is an error and never converted. Errors name file and key.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tokamak {

// Error(kind) naming `path` if the text is not one JSON object.
nlohmann::json parse_json_object(std::string_view text, const std::string& path, Kind kind);

// The file's text parsed so; files above 64 MiB are refused.
nlohmann::json read_json_object(const std::string& path, Kind kind);

}  // namespace tokamak

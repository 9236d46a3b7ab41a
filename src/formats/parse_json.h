// The one way from foreign bytes to a value of nlohmann::json. That library parses any depth, but copies, compares and
// prints a value by recursion: a line of 400,000 brackets would overflow the stack of whoever touches it.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace tokamak {

constexpr int kDeepestJson = 256;

// Whether a JSON text has objects and lists within one another beyond `deepest`.
bool is_nested_deeper(std::string_view text, int deepest);

// is_discarded() where the text is no JSON or nested deeper than kDeepestJson.
template <class Json = nlohmann::json>
Json try_parse_json(std::string_view text) {
  if (is_nested_deeper(text, kDeepestJson)) return Json(nlohmann::detail::value_t::discarded);
  return Json::parse(text, nullptr, false);
}

}  // namespace tokamak

// The one way from foreign bytes to a value of nlohmann::json. That library parses any depth, but copies, compares and
// prints a value by recursion: a line of 400,000 brackets would overflow the stack of whoever touches it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace tokamak {

constexpr int kDeepestJson = 256;
constexpr int64_t kMostMembers = 4096;

// The size of a JSON text, found without parsing it. It may be wrong for invalid JSON, which the parser refuses.
struct JsonExtent {
  int depth = 0;        // of objects and lists within one another
  int64_t members = 0;  // of all its objects
};
JsonExtent extent_of_json(std::string_view text);

// The result is_discarded() if the text is no JSON, is nested deeper than kDeepestJson or has more than kMostMembers.
// The last limit is for ordered_json, which compares each name with all before it.
template <class Json = nlohmann::json>
Json try_parse_json(std::string_view text) {
  const JsonExtent extent = extent_of_json(text);
  if (extent.depth > kDeepestJson || extent.members > kMostMembers) return Json(nlohmann::detail::value_t::discarded);
  return Json::parse(text, nullptr, false);
}

// Returns an integer in the range of Int, else throws type_error. The library would convert any number.
template <class Int, class Json>
Int whole_of(const Json& value) {
  const bool is_whole = value.is_number_unsigned()
                            ? std::in_range<Int>(value.template get<uint64_t>())
                            : value.is_number_integer() && std::in_range<Int>(value.template get<int64_t>());
  if (!is_whole) throw Json::type_error::create(302, "it is no whole number, or too large", &value);
  return value.template get<Int>();
}

}  // namespace tokamak

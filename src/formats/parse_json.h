// The one way from foreign bytes to a value of nlohmann::json. That library parses any depth, but copies, compares and
// prints a value by recursion: a line of 400,000 brackets would overflow the stack of whoever touches it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

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

// An integer that an Int can hold, or a type_error: the library converts any number, beyond the range too.
template <class Int, class Json>
Int whole_of(const Json& value) {
  const bool is_whole = value.is_number_unsigned()
                            ? std::in_range<Int>(value.template get<uint64_t>())
                            : value.is_number_integer() && std::in_range<Int>(value.template get<int64_t>());
  if (!is_whole) throw Json::type_error::create(302, "it is no whole number, or too large", &value);
  return value.template get<Int>();
}

}  // namespace tokamak

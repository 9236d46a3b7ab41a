// Options whose values are parsed by this program: names of an enum (enum_names, base/fields.h), and numbers with units.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "base/strings.h"
#include "config/units.h"

namespace tokamak::cli {

// The value called `name`, which must be one of them (as CLI::IsMember(enum_names(Enum{})) ensures).
template <class Enum>
Enum enum_from_name(const std::string& name) {
  const std::vector<std::string>& names = enum_names(Enum{});
  return static_cast<Enum>(std::find(names.begin(), names.end(), name) - names.begin());
}

// An option whose value has a unit ("250B", "5%").
template <class T>
CLI::Option* add_quantity(CLI::App* parser, const std::string& flag, T& value, Parsed<T> (*parse)(std::string_view),
                          const std::string& help) {
  const auto set = [&value, parse, flag](const std::string& text) {
    const Parsed<T> parsed = parse(text);
    if (!parsed.value) throw CLI::ValidationError(str(flag, " ", text), parsed.rule);
    value = *parsed.value;
  };
  return parser->add_option_function<std::string>(flag, set, help);
}

}  // namespace tokamak::cli

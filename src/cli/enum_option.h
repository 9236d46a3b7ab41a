// Options whose values are the names of an enum (enum_names, base/fields.h).
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace tokamak::cli {

// The value called `name`, which must be one of them (as CLI::IsMember(enum_names(Enum{})) ensures).
template <class Enum>
Enum enum_from_name(const std::string& name) {
  const std::vector<std::string>& names = enum_names(Enum{});
  return static_cast<Enum>(std::find(names.begin(), names.end(), name) - names.begin());
}

}  // namespace tokamak::cli

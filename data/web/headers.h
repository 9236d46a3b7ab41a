// Lines of "Name: value", as WARC and HTTP have them.
#pragma once

#include <algorithm>
#include <string_view>

#include "base/strings.h"
#include "data/rules/ascii.h"

namespace tokamak {

inline bool equal_in_any_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return ascii_lower(x) == ascii_lower(y); });
}

struct Header {
  std::string_view name, value;  // without white space around them; no name: the line has no colon

  bool is(std::string_view wanted) const { return equal_in_any_case(name, wanted); }
};

inline Header header_of(std::string_view line) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return {"", trim(line)};
  return {trim(line.substr(0, colon)), trim(line.substr(colon + 1))};
}

}  // namespace tokamak

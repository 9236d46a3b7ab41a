// How deep the elements of a page may nest, before a parser spends time that grows with the square of the depth.
#pragma once

#include <cstdint>
#include <string_view>

namespace tokamak {

// An upper bound, from one pass over the bytes: open tags without an end tag that surely ends them. Elements that HTML
// ends by itself (<p>, <li>, <td>) do not count: they nest only within others. Stops at `enough`.
int64_t most_depth(std::string_view html, int64_t enough);

}  // namespace tokamak

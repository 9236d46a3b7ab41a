// How deep the elements of a page may nest, before a parser spends time that grows with the square of the depth.
#pragma once

#include <cstdint>
#include <string_view>

namespace tokamak {

// An upper bound, from one pass over the bytes: open tags without a close tag of their name. Elements that HTML closes
// by itself (<p>, <li>, <td>) do not count: they nest only within others.
int64_t most_depth(std::string_view html);

}  // namespace tokamak

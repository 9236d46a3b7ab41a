// How much text each element of a page has, and how much of it is in links.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "data/web/page.h"

namespace tokamak {

struct PartSize {
  int32_t chars = 0;        // characters of text, white space collapsed
  int32_t link_chars = 0;   // of links
  int32_t links = 0;        // with text
  int32_t short_links = 0;  // with less than 10 characters
  int32_t all_links = 0;
  int32_t longest_link = 0;
  int32_t commas = 0;

  double share_of_links() const { return chars > 0 ? double(link_chars) / double(chars) : 0; }
};

// By node; nodes outside of `top` have zeros.
std::vector<PartSize> measure_parts(const PageTree& tree, NodeIndex top);

}  // namespace tokamak

#include "data/web/part_sizes.h"

#include <algorithm>

namespace tokamak {

namespace {

constexpr int32_t kShortLink = 10;

// Without the white space at its front, which belongs to the text before.
void count(std::string_view text, PartSize& size) {
  bool white = true;
  for (const char c : text) {
    const bool is_white = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    const bool begins_char = (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    if (begins_char && !(is_white && white)) ++size.chars;
    if (c == ',') ++size.commas;
    white = is_white;
  }
  if (white && size.chars > 0) --size.chars;
}

}  // namespace

std::vector<PartSize> measure_parts(const PageTree& tree, NodeIndex top) {
  std::vector<PartSize> sizes(static_cast<size_t>(tree.size()));
  walk(
      tree, top, [](NodeIndex) { return true; },
      [&](NodeIndex node) {
        PartSize& size = sizes[node];
        if (tree[node].is_text()) count(tree[node].text, size);
        PartSize added = size;
        if (tree[node].tag == "a") {
          added.link_chars = size.chars;
          added.longest_link = size.chars;
          added.links = size.chars > 0 ? 1 : 0;
          added.short_links = size.chars > 0 && size.chars < kShortLink ? 1 : 0;
          added.all_links = 1;
        }
        if (node == top) return;
        PartSize& parent = sizes[tree[node].parent];
        // Words of two blocks are apart.
        parent.chars += added.chars + (parent.chars > 0 && added.chars > 0 ? 1 : 0);
        parent.link_chars += added.link_chars;
        parent.links += added.links;
        parent.short_links += added.short_links;
        parent.all_links += added.all_links;
        parent.longest_link = std::max(parent.longest_link, added.longest_link);
        parent.commas += added.commas;
      });
  return sizes;
}

}  // namespace tokamak

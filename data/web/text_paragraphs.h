// The text of a page by paragraphs that look like text: long ones with few links, and shorter ones between them. After
// jusText (Pomikálek, 2011), without its lists of stop words, so that it works in any language.
#pragma once

#include <string>

#include "data/web/page.h"

namespace tokamak {

// Takes a tree without scripts and other elements that are never content.
std::string text_paragraphs(const PageTree& tree);

}  // namespace tokamak

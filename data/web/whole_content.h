// The text of a page without its frame: menus, footers, advertisements. It keeps more than main_content.h does, above
// all lists and tables, and is quicker.
//
// It follows the description of resiliparse's main_content extraction (Bevendorff et al., ECIR 2018): one walk, in
// which an element's tag, depth, share of links and name decide.
#pragma once

#include <string>

#include "data/web/content_marks.h"
#include "data/web/page.h"

namespace tokamak {

class WholeContent {
 public:
  std::string extract(const Page& page);  // "" if the page has no text

 private:
  ContentMarks marks_;
};

// The lines of `first`, and those that only `second` has, each where `second` has it: after the same line as there.
// The union of two extractors finds more text at the same quality (arXiv 2602.19548).
std::string union_of_lines(std::string_view first, std::string_view second);

}  // namespace tokamak

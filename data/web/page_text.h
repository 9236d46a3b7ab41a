// The text of a part of a page: blocks one below the other, white space as a browser shows it.
#pragma once

#include <string>
#include <string_view>

#include "data/web/page.h"

namespace tokamak {

bool is_block(std::string_view tag);  // begins a line of its own

// Builds text block by block.
class TextBuilder {
 public:
  void end_block();                 // the next text begins a new line
  void add(std::string_view text);  // white space collapses
  void add_preformatted(std::string_view text);
  const std::string& text() const { return text_; }
  std::string take();

 private:
  std::string text_;
  bool gap_ = false;       // white space is due before the next character
  bool new_line_ = false;  // a line end is due
};

// All text within `top`.
std::string text_of(const PageTree& tree, NodeIndex top);

}  // namespace tokamak

// The main text of a page: its article, without menus, shares, comments and other pages' teasers.
//
// It follows the description of trafilatura 2.3 (Barbaresi, ACL 2021). Elements that are never content are removed, and
// so are those that their names or links give away. The first part that is marked as content gives the text. If that is
// little, weaker evidence counts, step by step.
#pragma once

#include <memory>
#include <string>

#include "data/web/content_marks.h"
#include "data/web/page.h"

namespace tokamak {

class MainContent {
 public:
  // "" if the page has no text.
  std::string extract(const Page& page);

 private:
  struct Block {
    bool is_heading = false;
    std::string text;
  };
  enum class Focus { kBalanced, kRecall };
  // The text that counts: that of paragraphs and tables, also that of headings and lists, or all.
  enum class Taken { kParagraphs, kTextParts, kEverything };

  std::string best_text(PageTree tree, Focus focus);
  PageTree without_frame(const Page& page);
  std::string baseline(const PageTree& tree) const;
  void clean(PageTree& tree);
  void prune(PageTree& tree, NodeIndex top, Focus focus);
  void prune_links(PageTree& tree, NodeIndex top, std::string_view kind);
  std::vector<Block> blocks_of(const PageTree& tree, NodeIndex top, Taken taken_text) const;

  ContentMarks marks_;
};

}  // namespace tokamak

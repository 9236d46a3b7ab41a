// The names by which pages mark their parts, in class, id and role: content, comments, and what is neither. After
// trafilatura's lists (xpaths.py), which 990 labelled pages in many languages have shaped.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "data/web/page.h"

namespace tokamak {

// How sure a mark is that an element holds the main text. Each step is tried if those before found nothing.
constexpr int kContentSteps = 5;

// Answers by element. Pages repeat few class names, so answers are kept by name; each thread has its own.
class ContentMarks {
 public:
  ContentMarks();
  ~ContentMarks();
  ContentMarks(const ContentMarks&) = delete;
  ContentMarks& operator=(const ContentMarks&) = delete;

  void begin_page() { known_.clear(); }

  bool is_content(const PageTree& tree, NodeIndex node, int step);  // article, div, main or section
  bool is_comment(const PageTree& tree, NodeIndex node);
  bool is_boilerplate(const PageTree& tree, NodeIndex node);  // menus, shares, advertisements, related pages
  bool is_teaser(const PageTree& tree, NodeIndex node);
  bool is_appended(const PageTree& tree, NodeIndex node);  // whole other articles, below the page's own
  bool is_banner(const PageTree& tree, NodeIndex node);    // of cookies and consent

  // For readable_text.h: whether an element is likely no content, and how much its names speak for content.
  bool is_unlikely(const PageTree& tree, NodeIndex node);
  int weight(const PageTree& tree, NodeIndex node);  // -50 to 50

  // For whole_content.h, which trusts fewer names: parts around the content, and parts of it.
  bool is_frame(const PageTree& tree, NodeIndex node);
  bool is_wrapper(const PageTree& tree, NodeIndex node);

 private:
  struct Patterns;
  bool matches(int pattern, std::string_view name);

  std::unique_ptr<Patterns> patterns_;
  std::unordered_map<std::string, uint32_t> known_;  // by pattern and name; bit 0: matches
};

}  // namespace tokamak

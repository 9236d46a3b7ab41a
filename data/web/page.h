// A page of HTML as a tree that extractors prune. Gumbo parses it by the rules of HTML5 (page.cc, the only file that
// includes it); the tree is ours, so that an element can be removed or renamed.
//
// Pages are hostile: number of nodes, depth and memory are bounded. The bounds are counts and never times, so that a
// page has the same result everywhere. Nothing here recurses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tokamak {

struct HtmlLimits {
  int64_t nodes = 500'000;
  int64_t depth = 2'000;
  int64_t bytes_per_byte = 64;  // memory of the parser, for each byte of HTML
};

using NodeIndex = uint32_t;
constexpr NodeIndex kNoNode = UINT32_MAX;

struct Attribute {
  std::string_view name, value;  // the name in lower case
};

struct Node {
  std::string_view tag;   // in lower case: "div"; "" for text
  std::string_view text;  // of a text node
  NodeIndex parent = kNoNode, first_child = kNoNode, last_child = kNoNode, next = kNoNode, previous = kNoNode;
  uint32_t first_attribute = 0, attributes = 0;

  bool is_text() const { return tag.empty(); }
};

// The elements and texts of a page, by index. A child's index is greater than its parent's. Copies share the strings.
class PageTree {
 public:
  explicit PageTree(const std::vector<Attribute>* attributes) : all_attributes_(attributes) {}

  NodeIndex root() const { return 0; }  // <html>
  int64_t size() const { return std::ssize(nodes_); }
  const Node& operator[](NodeIndex node) const { return nodes_[node]; }
  std::string_view attribute(NodeIndex node, std::string_view name) const;  // "" if it has none
  bool has_attribute(NodeIndex node, std::string_view name) const;
  bool is_within(NodeIndex node, NodeIndex top) const;

  // The node after `node` in document order, within `top`; kNoNode after the last.
  NodeIndex after(NodeIndex node, NodeIndex top) const;
  NodeIndex after_subtree(NodeIndex node, NodeIndex top) const;  // skips what is in `node`

  NodeIndex append(NodeIndex parent, Node node);
  void remove(NodeIndex node);                                                   // with its subtree
  void rename(NodeIndex node, std::string_view tag) { nodes_[node].tag = tag; }  // `tag` lives as long as the page

 private:
  std::vector<Node> nodes_;
  const std::vector<Attribute>* all_attributes_;
};

// Calls enter(node) before the nodes within it, and leave(node) after them. If enter returns false, they are skipped.
template <class Enter, class Leave>
void walk(const PageTree& tree, NodeIndex top, const Enter& enter, const Leave& leave) {
  for (NodeIndex node = top;;) {
    if (enter(node) && tree[node].first_child != kNoNode) {
      node = tree[node].first_child;
      continue;
    }
    leave(node);
    while (node != top && tree[node].next == kNoNode) {
      node = tree[node].parent;
      leave(node);
    }
    if (node == top) return;
    node = tree[node].next;
  }
}

// Removes the elements within `top` for which is_gone(node) holds.
template <class IsGone>
void remove_where(PageTree& tree, NodeIndex top, const IsGone& is_gone) {
  for (NodeIndex node = tree.after(top, top); node != kNoNode;) {
    const bool gone = !tree[node].is_text() && is_gone(node);
    const NodeIndex next = gone ? tree.after_subtree(node, top) : tree.after(node, top);
    if (gone) tree.remove(node);
    node = next;
  }
}

inline bool one_of(std::string_view tag, std::initializer_list<std::string_view> tags) {
  return std::find(tags.begin(), tags.end(), tag) != tags.end();
}
inline bool is_heading(std::string_view tag) {
  return tag.size() == 2 && tag[0] == 'h' && tag[1] >= '1' && tag[1] <= '6';
}

class PageMemory;

class Page {
 public:
  enum class Problem { kTooManyNodes, kTooDeep, kTooMuchMemory };

  // `html` is UTF-8. Nothing, with the reason in `problem`, for a page beyond the limits.
  static std::optional<Page> parse(std::string_view html, const HtmlLimits& limits, Problem& problem);

  ~Page();
  Page(Page&&) noexcept;
  Page& operator=(Page&&) noexcept;

  const PageTree& tree() const { return tree_; }

 private:
  Page();

  std::unique_ptr<PageMemory> memory_;  // of the strings
  std::unique_ptr<std::vector<Attribute>> attributes_;
  PageTree tree_;
};

}  // namespace tokamak

#include "data/web/lead.h"

#include "data/web/page_text.h"
#include "data/web/part_sizes.h"

namespace tokamak {

namespace {

constexpr int32_t kLeastLead = 50;  // characters

bool has_blocks(const PageTree& tree, NodeIndex top) {
  for (NodeIndex node = tree.after(top, top); node != kNoNode; node = tree.after(node, top))
    if (is_block(tree[node].tag) && tree[node].tag != "br") return true;
  return false;
}

}  // namespace

std::vector<std::string> lead_of(const PageTree& tree, NodeIndex content, ContentMarks& marks) {
  const NodeIndex root = tree.root();
  const std::vector<PartSize> sizes = measure_parts(tree, root);
  std::vector<NodeIndex> around;  // the elements that hold the content, the innermost first
  for (NodeIndex node = content; node != kNoNode; node = tree[node].parent) around.push_back(node);
  std::vector<std::string> lead;
  bool below_heading = false;
  for (NodeIndex node = root; node != content;) {
    if (node == around.back()) {
      around.pop_back();
      node = tree.after(node, root);
      continue;
    }
    const std::string_view tag = tree[node].tag;
    if (tag == "h1") {
      below_heading = true;
      lead.clear();
    }
    const bool is_other =
        tree[node].is_text() || one_of(tag, {"a", "h1", "ul", "ol", "dl", "table"}) || marks.is_boilerplate(tree, node);
    const bool is_lead = !is_other && below_heading && one_of(tag, {"p", "div", "h2", "h3"}) &&
                         sizes[node].chars >= kLeastLead && sizes[node].all_links == 0 && !has_blocks(tree, node);
    if (is_lead) lead.push_back(text_of(tree, node));
    node = is_other || is_lead ? tree.after_subtree(node, root) : tree.after(node, root);
  }
  return lead;
}

}  // namespace tokamak

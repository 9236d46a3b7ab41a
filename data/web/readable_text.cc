#include "data/web/readable_text.h"

#include <algorithm>
#include <map>
#include <vector>

#include "data/web/page_text.h"
#include "data/web/part_sizes.h"

namespace tokamak {

namespace {

constexpr int32_t kLeastText = 25;  // characters of a paragraph

int tag_score(std::string_view tag) {
  if (one_of(tag, {"div", "article"})) return 5;
  if (one_of(tag, {"pre", "td", "blockquote"})) return 3;
  if (one_of(tag, {"address", "ol", "ul", "dl", "dd", "dt", "li", "form", "aside"})) return -3;
  if (one_of(tag, {"h1", "h2", "h3", "h4", "h5", "h6", "th", "header", "footer", "nav"})) return -5;
  return 0;
}

// A division without blocks in it is a paragraph.
bool is_paragraph(const PageTree& tree, NodeIndex node) {
  if (one_of(tree[node].tag, {"p", "pre", "td"})) return true;
  if (tree[node].tag != "div") return false;
  for (NodeIndex inner = tree.after(node, node); inner != kNoNode; inner = tree.after(inner, node))
    if (one_of(tree[inner].tag, {"address", "article", "aside", "audio", "blockquote", "dl", "div", "img", "ol", "p",
                                 "pre", "table", "ul"}))
      return false;
  return true;
}

std::map<NodeIndex, double> scores_of(const PageTree& tree, const std::vector<PartSize>& sizes, ContentMarks& marks) {
  std::map<NodeIndex, double> scores;
  const NodeIndex root = tree.root();
  for (NodeIndex node = tree.after(root, root); node != kNoNode; node = tree.after(node, root)) {
    if (tree[node].is_text() || sizes[node].chars < kLeastText || !is_paragraph(tree, node)) continue;
    const NodeIndex parent = tree[node].parent, grandparent = parent == kNoNode ? kNoNode : tree[parent].parent;
    const double score = 2 + sizes[node].commas + std::min(sizes[node].chars / 100.0, 3.0);
    for (const NodeIndex above : {parent, grandparent}) {
      if (above == kNoNode) continue;
      const auto [at, is_new] = scores.try_emplace(above, 0.0);
      if (is_new) at->second = marks.weight(tree, above) + tag_score(tree[above].tag);
      at->second += above == parent ? score : score / 2;
    }
  }
  for (auto& [node, score] : scores) score *= 1 - sizes[node].share_of_links();
  return scores;
}

// Parts of the article that are lists of links, galleries or fields.
void prune_article(PageTree& tree, NodeIndex top, const std::map<NodeIndex, double>& scores, ContentMarks& marks) {
  const std::vector<PartSize> sizes = measure_parts(tree, top);
  remove_where(tree, top, [&](NodeIndex node) {
    const std::string_view tag = tree[node].tag;
    const PartSize& size = sizes[node];
    if (is_heading(tag)) return marks.weight(tree, node) < 0 || size.share_of_links() > 0.33;
    if (!one_of(tag, {"table", "ul", "div", "aside", "header", "footer", "section"})) return false;
    const int weight = marks.weight(tree, node);
    const auto score = scores.find(node);
    if (weight + (score == scores.end() ? 0 : score->second) < 0) return true;
    if (size.commas >= 10) return false;
    int paragraphs = 0, items = -100, images = 0;
    for (NodeIndex inner = tree.after(node, node); inner != kNoNode; inner = tree.after(inner, node)) {
      paragraphs += tree[inner].tag == "p" ? 1 : 0;
      items += tree[inner].tag == "li" ? 1 : 0;
      images += tree[inner].tag == "img" ? 1 : 0;
    }
    if (paragraphs > 0 && images > 1 + 1.3 * paragraphs) return true;
    if (items > paragraphs && tag != "ul") return true;
    return size.chars < kLeastText || size.share_of_links() > (weight >= 25 ? 0.5 : 0.2);
  });
}

}  // namespace

std::string readable_text(PageTree tree, ContentMarks& marks) {
  const NodeIndex root = tree.root();
  remove_where(tree, root, [&](NodeIndex node) {
    return one_of(tree[node].tag, {"head", "script", "style", "template", "iframe", "textarea", "select"}) ||
           marks.is_unlikely(tree, node);
  });
  const std::vector<PartSize> sizes = measure_parts(tree, root);
  const std::map<NodeIndex, double> scores = scores_of(tree, sizes, marks);
  const auto best =
      std::max_element(scores.begin(), scores.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (best == scores.end()) return "";
  const double least = std::max(10.0, 0.2 * best->second);
  std::vector<NodeIndex> taken;
  const NodeIndex parent = tree[best->first].parent;
  for (NodeIndex node = parent == kNoNode ? best->first : tree[parent].first_child; node != kNoNode;
       node = tree[node].next) {
    const auto score = scores.find(node);
    const bool is_text = tree[node].tag == "p" && sizes[node].chars > 80 && sizes[node].share_of_links() < 0.25;
    if (node == best->first || (score != scores.end() && score->second >= least) || is_text) taken.push_back(node);
  }
  std::string text;
  for (const NodeIndex node : taken) {
    prune_article(tree, node, scores, marks);
    const std::string part = text_of(tree, node);
    if (part.empty()) continue;
    if (!text.empty()) text += '\n';
    text += part;
  }
  return text;
}

}  // namespace tokamak

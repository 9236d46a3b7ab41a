#include "data/web/whole_content.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "data/web/page_text.h"
#include "data/web/part_sizes.h"

namespace tokamak {

namespace {

bool is_hidden(const PageTree& tree, NodeIndex node) {
  const std::string_view style = tree.attribute(node, "style");
  return tree.has_attribute(node, "hidden") || tree.attribute(node, "aria-hidden") == "true" ||
         tree.attribute(node, "aria-expanded") == "false" || style.find("display:none") != style.npos ||
         style.find("display: none") != style.npos || style.find("visibility:hidden") != style.npos;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

std::string WholeContent::extract(const Page& page) {
  marks_.begin_page();
  const PageTree& tree = page.tree();
  const std::vector<PartSize> sizes = measure_parts(tree, tree.root());
  int depth = 0, preformatted = 0;
  const auto is_frame = [&](NodeIndex node) {
    const std::string_view tag = tree[node].tag;
    const PartSize& size = sizes[node];
    if (one_of(tag, {"html", "body", "main", "h1"})) return false;
    if (one_of(tag, {"head", "script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "nav",
                     "aside", "audio", "video", "time", "form", "button", "select", "textarea", "input"}))
      return tag != "form" || size.chars <= sizes[tree.root()].chars / 2;
    if (is_hidden(tree, node)) return true;
    const double links = size.share_of_links();
    const bool is_last = tree[node].next == kNoNode;
    if (tag == "footer") return depth < 3 || links > 0.2 || is_last;
    if (one_of(tag, {"ul", "ol"}) && (depth < 4 || links > 0.2) && links > 0) return links > 0.2;
    if (tag == "article" && depth > 2 && size.chars <= 500 && links > 0.2) return true;
    if (!is_block(tag)) return false;
    if (marks_.is_frame(tree, node) && !marks_.is_wrapper(tree, node)) return true;
    if (!one_of(tag, {"div", "section", "table", "p"})) return false;
    return depth > 2 && size.chars <= 1500 && links > 0.6;
  };
  TextBuilder builder;
  walk(
      tree, tree.root(),
      [&](NodeIndex node) {
        const Node& here = tree[node];
        if (here.is_text()) {
          if (preformatted > 0)
            builder.add_preformatted(here.text);
          else
            builder.add(here.text);
          return false;
        }
        if (is_block(here.tag)) builder.end_block();
        ++depth;
        preformatted += here.tag == "pre" ? 1 : 0;
        return !is_frame(node);
      },
      [&](NodeIndex node) {
        const Node& here = tree[node];
        if (here.is_text()) return;
        --depth;
        preformatted -= here.tag == "pre" ? 1 : 0;
        if (is_block(here.tag)) builder.end_block();
      });
  return builder.take();
}

std::string union_of_lines(std::string_view first, std::string_view second) {
  const std::vector<std::string_view> base = lines_of(first);
  std::unordered_map<std::string_view, size_t> where;  // of each line of the base, the first place
  for (size_t i = 0; i < base.size(); ++i) where.try_emplace(base[i], i);
  std::vector<std::vector<std::string_view>> added(base.size() + 1);  // before line i of the base
  size_t at = 0;
  for (const std::string_view line : lines_of(second)) {
    const auto found = where.find(line);
    if (found != where.end())
      at = std::max(at, found->second + 1);
    else if (first.find(line) == std::string_view::npos)
      added[at].push_back(line);
  }
  std::string out;
  const auto put = [&](std::string_view line) {
    if (!out.empty()) out += '\n';
    out += line;
  };
  for (size_t i = 0; i <= base.size(); ++i) {
    for (const std::string_view line : added[i]) put(line);
    if (i < base.size()) put(base[i]);
  }
  return out;
}

}  // namespace tokamak

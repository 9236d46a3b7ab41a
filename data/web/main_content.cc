#include "data/web/main_content.h"

#include <algorithm>

#include "data/rules/text_lines.h"
#include "data/web/lead.h"
#include "data/web/page_text.h"
#include "data/web/part_sizes.h"
#include "data/web/readable_text.h"
#include "data/web/text_paragraphs.h"

namespace tokamak {

namespace {

constexpr int64_t kEnoughText = 250;  // characters of a page's text, below which more is tried
constexpr int64_t kShortText = 3000;
constexpr double kShareOfPage = 0.2;
constexpr int64_t kFewParagraphs = 3 * kEnoughText;

// Elements without main text, whatever they hold. Sorted.
constexpr std::string_view kNeverContent[] = {
    "applet",   "area",        "aside",    "audio",  "blink",    "button",  "canvas",   "datalist", "dialog",
    "embed",    "fencedframe", "fieldset", "figure", "footer",   "frame",   "frameset", "head",     "iframe",
    "input",    "label",       "legend",   "link",   "map",      "marquee", "math",     "menu",     "menuitem",
    "nav",      "noindex",     "noscript", "object", "optgroup", "option",  "output",   "param",    "picture",
    "progress", "rp",          "rt",       "rtc",    "script",   "select",  "source",   "style",    "svg",
    "template", "textarea",    "time",     "track",  "use",      "video"};

bool is_list(std::string_view tag) { return one_of(tag, {"ul", "ol", "dl"}); }
bool is_formatting(std::string_view tag) {
  return one_of(
      tag, {"b", "strong", "i", "em", "u", "kbd", "samp", "tt", "var", "sub", "sup", "del", "s", "strike", "code"});
}
bool is_paragraph_part(std::string_view tag) {
  return one_of(tag, {"p", "blockquote", "pre", "q", "code", "td", "th"});
}
// Its text is content by itself, wherever it stands.
bool is_text_part(std::string_view tag) {
  return is_heading(tag) || is_formatting(tag) ||
         one_of(tag, {"p", "li", "dd", "dt", "blockquote", "pre", "q", "td", "th", "caption", "summary"});
}

bool contains_tag(const PageTree& tree, NodeIndex top, std::string_view tag) {
  for (NodeIndex node = tree.after(top, top); node != kNoNode; node = tree.after(node, top))
    if (tree[node].tag == tag) return true;
  return false;
}

int64_t chars_of(const std::string& text) { return count_chars(text); }

}  // namespace

void MainContent::clean(PageTree& tree) {
  const NodeIndex root = tree.root();
  remove_where(tree, root,
               [&](NodeIndex node) { return marks_.is_appended(tree, node) || marks_.is_comment(tree, node); });
  // Tables that only place their content are like divisions, and so are figures with tables.
  for (NodeIndex node = root; node != kNoNode; node = tree.after(node, root)) {
    const std::string_view tag = tree[node].tag;
    if (tag == "table" && one_of(tree.attribute(node, "role"), {"presentation", "none"})) tree.rename(node, "div");
    if (tag == "figure" && contains_tag(tree, node, "table")) tree.rename(node, "div");
  }
  remove_where(tree, root, [&](NodeIndex node) {
    return std::binary_search(std::begin(kNeverContent), std::end(kNeverContent), tree[node].tag);
  });
  // A form around most of the page is a container; others are searches and logins.
  const std::vector<PartSize> sizes = measure_parts(tree, root);
  remove_where(tree, root,
               [&](NodeIndex node) { return tree[node].tag == "form" && sizes[node].chars <= sizes[root].chars / 2; });
}

// Parts that are rich in links.
void MainContent::prune_links(PageTree& tree, NodeIndex top, std::string_view kind) {
  const std::vector<PartSize> sizes = measure_parts(tree, top);
  const auto next_element = [&](NodeIndex node) {
    NodeIndex next = tree[node].next;
    while (next != kNoNode && tree[next].is_text()) next = tree[next].next;
    return next;
  };
  const auto is_farm = [&](NodeIndex node) {
    const std::string_view tag = tree[node].tag;
    if (kind == "list" ? !is_list(tag) : tag != kind) return false;
    const PartSize& size = sizes[node];
    if (size.all_links == 0) return false;
    if (tag == "p" && one_of(tree[tree[node].parent].tag, {"li", "dd", "dt", "td", "th"})) return false;
    if (size.all_links == 1 && size.longest_link > 100 && double(size.longest_link) > 0.9 * double(size.chars))
      return true;
    const bool last = next_element(node) == kNoNode;
    const int32_t limit = tag == "p" ? (last ? 60 : 30) : last ? 300 : 100;
    if (size.chars < limit) {
      if (size.links == 0) return true;
      if (double(size.link_chars) > 0.8 * double(size.chars)) return true;
      if (size.links > 1 && double(size.short_links) > 0.8 * double(size.links)) return true;
      int children = 0;
      for (NodeIndex child = tree[node].first_child; child != kNoNode; child = tree[child].next)
        children += tree[child].is_text() ? 0 : 1;
      return tag == "div" && children >= 3 && size.chars < 100;
    }
    return size.all_links > 4 && double(size.link_chars) > 0.9 * double(size.chars) &&
           size.link_chars < 100 * size.links;
  };
  remove_where(tree, top, is_farm);
}

void MainContent::prune(PageTree& tree, NodeIndex top, Focus focus) {
  // Marks that would remove most of the text are names of something else.
  std::vector<NodeIndex> gone;
  const std::vector<PartSize> sizes = measure_parts(tree, top);
  int64_t gone_chars = 0;
  for (NodeIndex node = tree.after(top, top); node != kNoNode;) {
    const bool is_gone = !tree[node].is_text() && marks_.is_boilerplate(tree, node);
    if (is_gone) gone.push_back(node), gone_chars += sizes[node].chars;
    node = is_gone ? tree.after_subtree(node, top) : tree.after(node, top);
  }
  if (sizes[top].chars - gone_chars > sizes[top].chars / 7)
    for (const NodeIndex node : gone) tree.remove(node);
  const auto caption = [](std::string_view name) { return name.find("caption") != name.npos; };
  remove_where(tree, top, [&](NodeIndex node) {
    return one_of(tree[node].tag, {"div", "li", "ul", "ol", "dl", "p", "section", "span"}) &&
           (caption(tree.attribute(node, "id")) || caption(tree.attribute(node, "class")));
  });
  // The teaser of another page leads to it. One without a link is the article's own lead.
  if (focus == Focus::kBalanced)
    remove_where(tree, top, [&](NodeIndex node) { return marks_.is_teaser(tree, node) && sizes[node].all_links > 0; });
  for (int pass = 0; pass < 2; ++pass)
    for (const std::string_view kind : {"div", "list", "p"}) prune_links(tree, top, kind);
  const std::vector<PartSize> left = measure_parts(tree, top);
  remove_where(tree, top, [&](NodeIndex node) {
    const PartSize& size = left[node];
    if (tree[node].tag != "table" || size.chars < 200) return false;
    return double(size.link_chars) > (size.chars < 1000 ? 0.8 : 0.5) * double(size.chars);
  });
}

std::vector<MainContent::Block> MainContent::blocks_of(const PageTree& tree, NodeIndex top, Taken taken_text) const {
  std::vector<Block> blocks;
  TextBuilder builder;
  int parts = 0, headings = 0, preformatted = 0;
  bool block_is_heading = false, after_break = false;
  const auto end_block = [&] {
    std::string text = builder.take();
    if (!text.empty()) blocks.push_back({block_is_heading, std::move(text)});
    block_is_heading = headings > 0;
    after_break = false;
  };
  const auto count = [&](std::string_view tag, int by) {
    parts += (taken_text == Taken::kParagraphs ? is_paragraph_part(tag) : is_text_part(tag)) ? by : 0;
    headings += is_heading(tag) ? by : 0;
    preformatted += tag == "pre" ? by : 0;
  };
  walk(
      tree, top,
      [&](NodeIndex node) {
        const Node& here = tree[node];
        if (here.is_text()) {
          const bool taken =
              parts > 0 || taken_text == Taken::kEverything || (after_break && taken_text != Taken::kParagraphs);
          if (taken && preformatted > 0)
            builder.add_preformatted(here.text);
          else if (taken)
            builder.add(here.text);
          return false;
        }
        if (is_block(here.tag)) {
          count(here.tag, 1);
          end_block();
          after_break = here.tag == "br" || here.tag == "hr";
        } else {
          count(here.tag, 1);
        }
        return true;
      },
      [&](NodeIndex node) {
        const Node& here = tree[node];
        if (here.is_text()) return;
        count(here.tag, -1);
        if (is_block(here.tag) && here.tag != "br" && here.tag != "hr") end_block();
      });
  end_block();
  return blocks;
}

std::string MainContent::best_text(PageTree tree, Focus focus) {
  const PageTree cleaned = tree;
  const NodeIndex root = tree.root();
  int64_t paragraph_chars = 0;
  const auto join = [](const std::vector<Block>& blocks) {
    std::string text;
    for (const Block& block : blocks) {
      if (!text.empty()) text += '\n';
      text += block.text;
    }
    return text;
  };
  std::string best;
  for (int step = 0; step < kContentSteps && best.empty(); ++step) {
    NodeIndex top = kNoNode;
    for (NodeIndex node = tree.after(root, root); node != kNoNode && top == kNoNode; node = tree.after(node, root))
      if (!tree[node].is_text() && marks_.is_content(tree, node, step)) top = node;
    if (top == kNoNode) continue;
    const std::vector<std::string> lead = lead_of(tree, top, marks_);
    prune(tree, top, focus);
    const std::vector<PartSize> sizes = measure_parts(tree, root);
    paragraph_chars = 0;
    for (NodeIndex node = root; node != kNoNode; node = tree.after(node, root))
      if (tree[node].tag == "p") paragraph_chars += sizes[node].chars;
    const Taken taken = paragraph_chars < kFewParagraphs ? Taken::kEverything : Taken::kTextParts;
    std::vector<Block> blocks = blocks_of(tree, top, taken);
    while (!blocks.empty() && blocks.back().is_heading) blocks.pop_back();
    if (blocks.size() <= 1) continue;
    for (size_t i = 0; i < lead.size(); ++i) blocks.insert(blocks.begin() + std::ptrdiff_t(i), Block{false, lead[i]});
    best = join(blocks);
  }
  if (chars_of(best) >= kEnoughText) return best;
  // Text parts anywhere on the page.
  PageTree wild = cleaned;
  prune(wild, root, focus);
  const std::vector<Block> blocks =
      blocks_of(wild, root, focus == Focus::kRecall ? Taken::kEverything : Taken::kParagraphs);
  const std::string text = join(blocks);
  return chars_of(text) > chars_of(best) ? text : best;
}

// All text of the page but what is never content: a measure of how much there is, and a last resort.
PageTree MainContent::without_frame(const Page& page) {
  PageTree tree = page.tree();
  remove_where(tree, tree.root(), [&](NodeIndex node) {
    const std::string_view tag = tree[node].tag;
    if (one_of(tag, {"aside", "fencedframe", "footer", "script", "style", "svg", "template", "head", "noscript"}))
      return true;
    if (tag == "div") {
      const std::string_view name = tree.attribute(node, "class"), id = tree.attribute(node, "id");
      if ((name.empty() ? id : name).find("footer") != std::string_view::npos) return true;
    }
    return marks_.is_banner(tree, node);
  });
  return tree;
}

// Texts of articles, else of paragraphs, else of everything.
std::string MainContent::baseline(const PageTree& tree) const {
  std::vector<std::string> articles;
  size_t longest = 0;
  const NodeIndex root = tree.root();
  for (NodeIndex node = root; node != kNoNode;) {
    const bool is_article = tree[node].tag == "article";
    if (is_article) articles.push_back(text_of(tree, node)), longest = std::max(longest, articles.back().size());
    node = is_article ? tree.after_subtree(node, root) : tree.after(node, root);
  }
  const auto join = [](const std::vector<std::string>& texts, size_t least) {
    std::string out;
    for (const std::string& text : texts) {
      if (text.size() < least || text.empty()) continue;
      if (!out.empty()) out += '\n';
      out += text;
    }
    return out;
  };
  if (longest > 100) return join(articles, std::max<size_t>(100, longest / 5));
  std::vector<std::string> paragraphs;
  for (NodeIndex node = root; node != kNoNode;) {
    const bool taken = one_of(tree[node].tag, {"blockquote", "code", "p", "pre", "q"});
    if (taken) paragraphs.push_back(text_of(tree, node));
    node = taken ? tree.after_subtree(node, root) : tree.after(node, root);
  }
  std::string text = join(paragraphs, 1);
  return text.size() > 100 ? text : text_of(tree, root);
}

std::string MainContent::extract(const Page& page) {
  marks_.begin_page();
  PageTree tree = page.tree();
  clean(tree);
  std::string text = best_text(tree, Focus::kBalanced);
  // Another method finds much more, or the first one found nothing.
  std::string readable = readable_text(page.tree(), marks_);
  const int64_t readable_chars = chars_of(readable);
  if (readable_chars > 2 * chars_of(text) && !readable.starts_with('{')) text = std::move(readable);
  const PageTree whole = without_frame(page);
  if (chars_of(text) < kEnoughText) {
    std::string more = text_paragraphs(whole);
    if (chars_of(more) > chars_of(text)) text = std::move(more);
  }
  if (chars_of(text) < kEnoughText) {
    std::string more = baseline(whole);
    if (chars_of(more) > chars_of(text)) text = std::move(more);
  }
  // A short text on a long page: the page has another layout than articles have.
  const int64_t chars = chars_of(text);
  if (chars == 0 || chars >= kShortText ||
      double(chars) >= kShareOfPage * double(chars_of(text_of(whole, whole.root()))))
    return text;
  std::string more = best_text(std::move(tree), Focus::kRecall), paragraphs = text_paragraphs(whole);
  const int64_t more_chars = chars_of(more), paragraph_chars = chars_of(paragraphs);
  if (paragraph_chars > more_chars && paragraph_chars > 2 * chars) return paragraphs;
  if (more_chars >= kEnoughText && double(more_chars) > 1.5 * double(chars)) return more;
  return text;
}

}  // namespace tokamak

#include "data/web/page.h"

#include <gumbo.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>

#include "data/web/headers.h"
#include "data/web/page_depth.h"

namespace tokamak {

// The memory of one page: of gumbo's tree while it parses, and of the strings after. Nothing is freed alone, so a deep
// tree needs no recursion to go.
class PageMemory {
 public:
  explicit PageMemory(int64_t most) : most_(most) {}

  // nullptr beyond the limit.
  void* take(size_t size) {
    size = (size + 15) & ~size_t{15};
    if (size > left_) {
      if (static_cast<int64_t>(size) > most_ - taken_) return nullptr;
      const size_t block = std::max(size, kBlockBytes);
      blocks_.push_back(std::make_unique<char[]>(block));
      at_ = blocks_.back().get();
      left_ = block;
      taken_ += static_cast<int64_t>(block);
    }
    char* const out = at_;
    at_ += size;
    left_ -= size;
    return out;
  }

 private:
  static constexpr size_t kBlockBytes = size_t{256} << 10;

  int64_t most_;
  int64_t taken_ = 0;
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* at_ = nullptr;
  size_t left_ = 0;
};

namespace {

// Gumbo cannot fail: it would use a null pointer. So the allocator leaves the parse by a jump. Nothing is lost, as all
// that gumbo has allocated belongs to the memory.
struct Parse {
  PageMemory* memory;
  std::jmp_buf leave;
};

void* allocate(void* parse, size_t size) {
  auto* const state = static_cast<Parse*>(parse);
  void* const out = state->memory->take(size);
  if (out == nullptr) std::longjmp(state->leave, 1);
  return out;
}

void keep(void* /*parse*/, void* /*memory*/) {}

// nullptr beyond the limit of the memory. No object with a destructor lives here, so that a jump skips none.
const GumboNode* parse_tree(std::string_view html, Parse& parse) {
  GumboOptions options = kGumboDefaultOptions;
  options.allocator = allocate;
  options.deallocator = keep;
  options.userdata = &parse;
  options.max_errors = 0;
  if (setjmp(parse.leave) != 0) return nullptr;
  return gumbo_parse_with_options(&options, html.data(), html.size())->root;
}

bool is_element(const GumboNode& node) { return node.type == GUMBO_NODE_ELEMENT || node.type == GUMBO_NODE_TEMPLATE; }

bool is_text(const GumboNode& node) {
  return node.type == GUMBO_NODE_TEXT || node.type == GUMBO_NODE_WHITESPACE || node.type == GUMBO_NODE_CDATA;
}

std::string_view tag_of(const GumboElement& element, PageMemory& memory) {
  if (element.tag != GUMBO_TAG_UNKNOWN) return gumbo_normalized_tagname(element.tag);
  GumboStringPiece piece = element.original_tag;
  gumbo_tag_from_original_text(&piece);
  auto* const name = static_cast<char*>(memory.take(piece.length + 1));
  if (name == nullptr || piece.length == 0) return "unknown";
  std::transform(piece.data, piece.data + piece.length, name, ascii_lower);
  return {name, piece.length};
}

}  // namespace

Page::Page() : attributes_(std::make_unique<std::vector<Attribute>>()), tree_(attributes_.get()) {}
Page::~Page() = default;
Page::Page(Page&&) noexcept = default;
Page& Page::operator=(Page&&) noexcept = default;

std::optional<Page> Page::parse(std::string_view html, const HtmlLimits& limits, Problem& problem) {
  constexpr int64_t kLeast = int64_t{4} << 20;
  if (most_depth(html, limits.depth + 1) > limits.depth) {
    problem = Problem::kTooDeep;
    return std::nullopt;
  }
  Page page;
  page.memory_ = std::make_unique<PageMemory>(kLeast + limits.bytes_per_byte * std::ssize(html));
  Parse parse{page.memory_.get(), {}};
  const GumboNode* const root = parse_tree(html, parse);
  if (root == nullptr) {
    problem = Problem::kTooMuchMemory;
    return std::nullopt;
  }
  struct Waiting {
    const GumboNode* node;
    NodeIndex parent;
    int64_t depth;
  };
  std::vector<Waiting> waiting = {{root, kNoNode, 0}};
  while (!waiting.empty()) {
    const auto [source, parent, depth] = waiting.back();
    waiting.pop_back();
    if (depth > limits.depth || page.tree_.size() >= limits.nodes) {
      problem = depth > limits.depth ? Problem::kTooDeep : Problem::kTooManyNodes;
      return std::nullopt;
    }
    if (is_text(*source)) {
      page.tree_.append(parent, {.text = source->v.text.text});
    } else if (is_element(*source)) {
      const GumboElement& element = source->v.element;
      Node node = {.tag = tag_of(element, *page.memory_),
                   .first_attribute = static_cast<uint32_t>(page.attributes_->size()),
                   .attributes = element.attributes.length};
      for (unsigned i = 0; i < element.attributes.length; ++i) {
        const auto* const attribute = static_cast<const GumboAttribute*>(element.attributes.data[i]);
        page.attributes_->push_back({attribute->name, attribute->value});
      }
      const NodeIndex index = page.tree_.append(parent, node);
      for (unsigned i = element.children.length; i-- > 0;)
        waiting.push_back({static_cast<const GumboNode*>(element.children.data[i]), index, depth + 1});
    }
  }
  return page;
}

NodeIndex PageTree::append(NodeIndex parent, Node node) {
  const auto index = static_cast<NodeIndex>(nodes_.size());
  node.parent = parent;
  if (parent != kNoNode) {
    node.previous = nodes_[parent].last_child;
    (node.previous == kNoNode ? nodes_[parent].first_child : nodes_[node.previous].next) = index;
    nodes_[parent].last_child = index;
  }
  nodes_.push_back(node);
  return index;
}

std::string_view PageTree::attribute(NodeIndex node, std::string_view name) const {
  const Node& element = nodes_[node];
  for (uint32_t i = 0; i < element.attributes; ++i)
    if ((*all_attributes_)[element.first_attribute + i].name == name)
      return (*all_attributes_)[element.first_attribute + i].value;
  return {};
}

bool PageTree::has_attribute(NodeIndex node, std::string_view name) const {
  const Node& element = nodes_[node];
  const auto begin = all_attributes_->begin() + element.first_attribute;
  return std::any_of(begin, begin + element.attributes, [&](const Attribute& a) { return a.name == name; });
}

NodeIndex PageTree::after(NodeIndex node, NodeIndex top) const {
  return nodes_[node].first_child != kNoNode ? nodes_[node].first_child : after_subtree(node, top);
}

NodeIndex PageTree::after_subtree(NodeIndex node, NodeIndex top) const {
  while (node != top && nodes_[node].next == kNoNode) node = nodes_[node].parent;
  return node == top ? kNoNode : nodes_[node].next;
}

bool PageTree::is_within(NodeIndex node, NodeIndex top) const {
  while (node != top && node != kNoNode) node = nodes_[node].parent;
  return node == top;
}

void PageTree::remove(NodeIndex node) {
  Node& gone = nodes_[node];
  if (gone.parent == kNoNode) return;
  (gone.previous == kNoNode ? nodes_[gone.parent].first_child : nodes_[gone.previous].next) = gone.next;
  (gone.next == kNoNode ? nodes_[gone.parent].last_child : nodes_[gone.next].previous) = gone.previous;
  gone.parent = gone.next = gone.previous = kNoNode;
}

}  // namespace tokamak

#include "config/config_tree.h"

#include <algorithm>
#include <charconv>
#include <span>

#include "base/printable.h"

namespace tokamak {

ConfigNode* ConfigNode::child(std::string_view name) {
  if (type != Type::kMap) return nullptr;
  const auto found = std::find_if(children.begin(), children.end(), [&](const ConfigNode& c) { return c.key == name; });
  return found == children.end() ? nullptr : &*found;
}

std::string ConfigNode::shown() const {
  switch (type) {
    case Type::kNull:
      return "empty";
    case Type::kScalar:
      return str("'", printable(text), "'");
    case Type::kList:
      return str("a list of ", children.size());
    case Type::kMap:
      return str("a mapping of ", children.size(), children.size() == 1 ? " key" : " keys");
  }
  return "";
}

std::vector<PathStep> parse_path(std::string_view path) {
  std::vector<PathStep> steps;
  for (const std::string& part : split(path, '.')) {
    const std::string_view text = trim(part);
    size_t at = std::min(text.find('['), text.size());
    if (at == 0) return {};
    steps.push_back({std::string(text.substr(0, at)), -1});
    while (at < text.size()) {
      const size_t close = text.find(']', at);
      if (text[at] != '[' || close == std::string_view::npos) return {};
      PathStep step;
      const auto [end, error] = std::from_chars(text.data() + at + 1, text.data() + close, step.index);
      if (error != std::errc() || end != text.data() + close || step.index < 0) return {};
      steps.push_back(step);
      at = close + 1;
    }
  }
  return steps;
}

std::string printed_path(const std::vector<PathStep>& path) {
  std::string out;
  for (const PathStep& step : path) out = step.index >= 0 ? str(out, "[", step.index, "]") : join_path(out, step.key);
  return out;
}

std::string join_path(const std::string& parent, const std::string& key) {
  return parent.empty() ? key : str(parent, ".", key);
}

ConfigNode* find_node(ConfigNode& root, const std::vector<PathStep>& path) {
  ConfigNode* node = &root;
  for (const PathStep& step : path) {
    if (step.index >= 0) {
      const bool there = node->type == ConfigNode::Type::kList && step.index < std::ssize(node->children);
      node = there ? &node->children[step.index] : nullptr;
    } else {
      node = node->child(step.key);
    }
    if (node == nullptr) return nullptr;
  }
  return node;
}

void overlay(ConfigNode& below, const ConfigNode& above) {
  if (!above.place.empty()) below.place = above.place;
  if (below.type == ConfigNode::Type::kMap && above.type == ConfigNode::Type::kNull) return;
  if (below.type != ConfigNode::Type::kMap || above.type != ConfigNode::Type::kMap) {
    below = above;
    return;
  }
  for (const ConfigNode& child : above.children) {
    if (ConfigNode* same = below.child(child.key)) {
      overlay(*same, child);
    } else {
      below.children.push_back(child);
    }
  }
}

std::string nearest_place(ConfigNode& root, const std::string& path, const std::string& otherwise) {
  std::string place = otherwise;
  std::vector<PathStep> steps;
  for (const PathStep& step : parse_path(path)) {
    steps.push_back(step);
    const ConfigNode* node = find_node(root, steps);
    if (node == nullptr) break;
    if (!node->place.empty()) place = node->place;
  }
  return place;
}

void fail_with(const std::vector<Problem>& problems) {
  constexpr size_t kMostShown = 20;
  TOKAMAK_CHECK(!problems.empty(), "an error without a cause");
  const auto sentence = [](const Problem& p) { return p.place.empty() ? p.what : str(p.place, ": ", p.what); };
  if (problems.size() == 1) fail(Kind::kConfig, sentence(problems[0]), problems[0].hint);
  std::string all = str(problems.size(), " errors in the config:");
  for (const Problem& problem : std::span(problems).first(std::min(problems.size(), kMostShown))) {
    all += "\n  " + sentence(problem);
    if (!problem.hint.empty()) all += str(" (", problem.hint, ")");
  }
  if (problems.size() > kMostShown) all += str("\n  and ", problems.size() - kMostShown, " more");
  fail(Kind::kConfig, all);
}

namespace {

void append_lines(const ConfigNode& node, const std::string& path, std::vector<ConfigLine>& lines) {
  std::vector<std::string> items;
  for (size_t i = 0; i < node.children.size(); ++i) {
    const ConfigNode& child = node.children[i];
    if (node.type == ConfigNode::Type::kMap)
      append_lines(child, join_path(path, child.key), lines);
    else if (child.type == ConfigNode::Type::kScalar)
      items.push_back(child.text);
    else
      append_lines(child, str(path, "[", i, "]"), lines);
  }
  if (node.type == ConfigNode::Type::kList && items.size() == node.children.size())
    lines.push_back({path, str("[", join(items, ", "), "]")});
  else if (node.type == ConfigNode::Type::kScalar || node.type == ConfigNode::Type::kNull)
    lines.push_back({path, node.text});
}

}  // namespace

std::vector<ConfigLine> config_lines(const ConfigNode& node) {
  std::vector<ConfigLine> lines;
  append_lines(node, "", lines);
  return lines;
}

}  // namespace tokamak
